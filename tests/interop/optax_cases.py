"""Every public name of optax, as a function of the namespace that it is looked up in: the package, or `funcml.optax`.

    OPTIMIZERS, TRANSFORMATIONS : name -> (namespace -> transformation)
    SCHEDULES                   : name -> (namespace -> schedule)
    FUNCTIONS                   : name -> (namespace, arrays -> result)
    UNUSUAL                     : name -> transformation, parameters, gradients of another kind
    SEARCHES, LOOPING_FUNCTIONS : what searches along a line, factorises a matrix or loops until something holds
    ELSEWHERE                   : names that a test of their own covers

Together they are all that optax makes public: a test compares.
"""

from __future__ import annotations

import numpy as np

_rng = np.random.default_rng(1)


def _normal(*shape):
    return _rng.standard_normal(shape).astype(np.float32)


def _softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


PARAMS = {"b": _normal(3), "w": _normal(4, 3), "z": {"s": _normal(2, 2)}}


def gradients(params, steps: int, seed: int = 2):
    """`steps` trees of gradients, the same at each call."""
    generator = np.random.default_rng(seed)

    def like(tree):
        if isinstance(tree, dict):
            return {k: like(v) for k, v in tree.items()}
        return generator.standard_normal(np.shape(tree)).astype(tree.dtype)

    return [like(params) for _ in range(steps)]


LR = 0.05

# ---- optimisers ------------------------------------------------------------------------------------------------------

OPTIMIZERS = {
    "adabelief": lambda o: o.adabelief(LR),
    "adadelta": lambda o: o.adadelta(LR),
    "adafactor": lambda o: o.adafactor(LR),
    "adagrad": lambda o: o.adagrad(LR),
    "adam": lambda o: o.adam(LR),
    "adamax": lambda o: o.adamax(LR),
    "adamaxw": lambda o: o.adamaxw(LR),
    "adamw": lambda o: o.adamw(LR),
    "adan": lambda o: o.adan(LR),
    "amsgrad": lambda o: o.amsgrad(LR),
    "fromage": lambda o: o.fromage(LR),
    "lamb": lambda o: o.lamb(LR),
    "lars": lambda o: o.lars(LR),
    "lion": lambda o: o.lion(LR),
    "nadam": lambda o: o.nadam(LR),
    "nadamw": lambda o: o.nadamw(LR),
    "noisy_sgd": lambda o: o.noisy_sgd(LR),
    "novograd": lambda o: o.novograd(LR),
    "optimistic_adam": lambda o: o.optimistic_adam(LR),
    "optimistic_adam_v2": lambda o: o.optimistic_adam_v2(LR),
    "optimistic_gradient_descent": lambda o: o.optimistic_gradient_descent(LR),
    "polyak_sgd": lambda o: o.polyak_sgd(),
    "radam": lambda o: o.radam(LR),
    "rmsprop": lambda o: o.rmsprop(LR, centered=True, momentum=0.9),
    "rprop": lambda o: o.rprop(LR),
    "sgd": lambda o: o.sgd(LR, momentum=0.9, nesterov=True),
    "sign_sgd": lambda o: o.sign_sgd(LR),
    "signum": lambda o: o.signum(LR),
    "sm3": lambda o: o.sm3(LR),
    "yogi": lambda o: o.yogi(LR),
    "contrib.acprop": lambda o: o.contrib.acprop(LR),
    "contrib.ademamix": lambda o: o.contrib.ademamix(LR),
    "contrib.adopt": lambda o: o.contrib.adopt(LR),
    "contrib.cocob": lambda o: o.contrib.cocob(),
    "contrib.dadapt_adamw": lambda o: o.contrib.dadapt_adamw(LR),
    "contrib.dog": lambda o: o.contrib.dog(LR),
    "contrib.dowg": lambda o: o.contrib.dowg(LR),
    "contrib.madgrad": lambda o: o.contrib.madgrad(LR),
    "contrib.mechanize": lambda o: o.contrib.mechanize(o.adam(LR)),
    "contrib.momo": lambda o: o.contrib.momo(LR),
    "contrib.momo_adam": lambda o: o.contrib.momo_adam(LR),
    "contrib.muon": lambda o: o.contrib.muon(LR),
    "contrib.normalize": lambda o: o.contrib.normalize(),
    "contrib.prodigy": lambda o: o.contrib.prodigy(LR),
    "contrib.reduce_on_plateau": lambda o: o.contrib.reduce_on_plateau(patience=1, cooldown=1),
    "contrib.sam": lambda o: o.contrib.sam(o.sgd(LR), o.sgd(0.1)),
    "contrib.schedule_free": lambda o: o.contrib.schedule_free(o.sgd(LR), LR),
    "contrib.schedule_free_adamw": lambda o: o.contrib.schedule_free_adamw(LR, warmup_steps=2),
    "contrib.schedule_free_sgd": lambda o: o.contrib.schedule_free_sgd(LR),
    "contrib.simplified_ademamix": lambda o: o.contrib.simplified_ademamix(LR),
    "contrib.split_real_and_imaginary": lambda o: o.contrib.split_real_and_imaginary(o.adam(LR)),
    "contrib.sophia": lambda o: o.contrib.sophia(LR, update_interval=2),
}

#: what `update` takes besides gradients, state and parameters
EXTRA = {
    **dict.fromkeys(
        ["polyak_sgd", "scale_by_polyak", "contrib.momo", "contrib.momo_adam", "contrib.reduce_on_plateau"],
        lambda step: {"value": np.float32(1 / (1 + step))},
    ),
    "contrib.sophia": lambda step: {"obj_fn": squares},
}


def squares(params):
    """An objective that JAX and NumPy can compute."""
    return sum(((step + 1) * x * x).sum() for step, x in enumerate([params["b"], params["w"], params["z"]["s"]]))



# ---- transformations, alone and combined -----------------------------------------------------------------------------

TRANSFORMATIONS = {
    "adaptive_grad_clip": lambda o: o.adaptive_grad_clip(0.1),
    "add_decayed_weights": lambda o: o.add_decayed_weights(0.1, mask={"b": False, "w": True, "z": True}),
    "add_noise": lambda o: o.add_noise(0.1, 0.5, 3),
    "apply_every": lambda o: o.apply_every(2),
    "apply_if_finite": lambda o: o.apply_if_finite(o.adam(LR), 3),
    "centralize": lambda o: o.centralize(),
    "chain": lambda o: o.chain(o.clip_by_global_norm(0.5), o.scale_by_adam(), o.scale_by_learning_rate(LR)),
    "clip": lambda o: o.clip(0.3),
    "clip_by_block_rms": lambda o: o.clip_by_block_rms(0.3),
    "clip_by_global_norm": lambda o: o.clip_by_global_norm(0.3),
    "conditionally_mask": lambda o: o.conditionally_mask(o.sgd(LR), lambda step: step % 2 == 0),
    "conditionally_transform": lambda o: o.conditionally_transform(o.sgd(LR), lambda step: step % 2 == 0),
    "ema": lambda o: o.ema(0.9),
    "flatten": lambda o: o.flatten(o.adam(LR)),
    "freeze": lambda o: o.freeze({"b": True, "w": False, "z": False}),
    "identity": lambda o: o.identity(),
    "inject_hyperparams": lambda o: o.inject_hyperparams(o.adam)(lambda step: LR / (1 + step)),
    "inject_stateful_hyperparams": lambda o: o.inject_stateful_hyperparams(o.adam)(LR),
    "keep_params_nonnegative": lambda o: o.keep_params_nonnegative(),
    "masked": lambda o: o.masked(o.adam(LR), lambda params: {k: k != "b" for k in params}),
    "measure_with_ema": lambda o: o.measure_with_ema(lambda updates: o.tree.scale(2.0, updates), 0.9),
    "monitor": lambda o: o.monitor({"norm": lambda updates: o.global_norm(updates)}),
    "multi_transform": lambda o: o.multi_transform(
        {"a": o.adam(LR), "s": o.sgd(LR)}, {"b": "a", "w": "s", "z": "a"}
    ),
    "named_chain": lambda o: o.named_chain(("clip", o.clip(0.5)), ("adam", o.adam(LR))),
    "normalize_by_update_norm": lambda o: o.normalize_by_update_norm(),
    "partition": lambda o: o.partition({"a": o.adam(LR), "s": o.set_to_zero()}, lambda p: {k: "as"[k == "w"] for k in p}),
    "scale": lambda o: o.scale(-0.1),
    "scale_by_adadelta": lambda o: o.scale_by_adadelta(),
    "scale_by_adam": lambda o: o.scale_by_adam(),
    "scale_by_adamax": lambda o: o.scale_by_adamax(),
    "scale_by_adan": lambda o: o.scale_by_adan(),
    "scale_by_amsgrad": lambda o: o.scale_by_amsgrad(),
    "scale_by_belief": lambda o: o.scale_by_belief(),
    "scale_by_distance_over_gradients": lambda o: o.scale_by_distance_over_gradients(),
    "scale_by_factored_rms": lambda o: o.scale_by_factored_rms(min_dim_size_to_factor=2),
    "scale_by_lbfgs": lambda o: o.scale_by_lbfgs(3),
    "scale_by_learning_rate": lambda o: o.scale_by_learning_rate(LR),
    "scale_by_lion": lambda o: o.scale_by_lion(),
    "scale_by_novograd": lambda o: o.scale_by_novograd(),
    "scale_by_optimistic_gradient": lambda o: o.scale_by_optimistic_gradient(),
    "scale_by_param_block_norm": lambda o: o.scale_by_param_block_norm(),
    "scale_by_param_block_rms": lambda o: o.scale_by_param_block_rms(),
    "scale_by_polyak": lambda o: o.scale_by_polyak(),
    "scale_by_radam": lambda o: o.scale_by_radam(),
    "scale_by_rms": lambda o: o.scale_by_rms(),
    "scale_by_rprop": lambda o: o.scale_by_rprop(LR),
    "scale_by_rss": lambda o: o.scale_by_rss(),
    "scale_by_schedule": lambda o: o.scale_by_schedule(o.cosine_decay_schedule(LR, 4)),
    "scale_by_sign": lambda o: o.scale_by_sign(),
    "scale_by_sm3": lambda o: o.scale_by_sm3(),
    "scale_by_stddev": lambda o: o.scale_by_stddev(),
    "scale_by_trust_ratio": lambda o: o.scale_by_trust_ratio(),
    "scale_by_yogi": lambda o: o.scale_by_yogi(),
    "selective_transform": lambda o: o.selective_transform(o.sgd(LR), freeze_mask={"b": True, "w": False, "z": False}),
    "set_to_zero": lambda o: o.set_to_zero(),
    "snapshot": lambda o: o.snapshot("norm", lambda updates: o.global_norm(updates)),
    "stateless": lambda o: o.stateless(lambda updates, params: o.tree.scale(0.5, updates)),
    "stateless_with_tree_map": lambda o: o.stateless_with_tree_map(lambda g, p: g * 0.5),
    "trace": lambda o: o.trace(0.9),
    "with_extra_args_support": lambda o: o.with_extra_args_support(o.adam(LR)),
    "zero_nans": lambda o: o.zero_nans(),
    "MultiSteps": lambda o: o.MultiSteps(o.adam(LR), 2),
    "MultiSteps.gradient_transformation": lambda o: o.MultiSteps(o.adam(LR), 2).gradient_transformation(),
    "MultiSteps.skip_not_finite": lambda o: o.MultiSteps(o.adam(LR), 2, should_skip_update_fn=o.skip_not_finite),
    "contrib.scale_by_acprop": lambda o: o.contrib.scale_by_acprop(),
    "contrib.scale_by_ademamix": lambda o: o.contrib.scale_by_ademamix(),
    "contrib.scale_by_adopt": lambda o: o.contrib.scale_by_adopt(),
    "contrib.scale_by_cocob": lambda o: o.contrib.scale_by_cocob(),
    "contrib.scale_by_madgrad": lambda o: o.contrib.scale_by_madgrad(LR),
    "contrib.scale_by_simplified_ademamix": lambda o: o.contrib.scale_by_simplified_ademamix(),
}

#: transformations of parameters or gradients of another kind: (namespace -> transformation), params, gradients
UNUSUAL = {
    "lookahead": (
        lambda o: o.lookahead(o.sgd(LR), 2, 0.5), lambda o: o.LookaheadParams.init_synced(PARAMS), lambda g: g
    ),
    "contrib.differentially_private_aggregate": (
        lambda o: o.contrib.differentially_private_aggregate(0.5, 1.1, 3), lambda o: PARAMS, lambda g: _examples(g)
    ),
    "contrib.scale_by_muon": (
        lambda o: o.contrib.scale_by_muon(weight_dimension_numbers={"w": o.contrib.MuonDimensionNumbers()}),
        lambda o: {"w": PARAMS["w"]},
        lambda g: {"w": g["w"]},
    ),
    "contrib.dpsgd": (lambda o: o.contrib.dpsgd(LR, 0.5, 1.1, 3), lambda o: PARAMS, lambda g: _examples(g)),
}


def _examples(gradients):
    """Gradients of three examples."""
    return {k: _examples(v) if isinstance(v, dict) else np.stack([v, -2 * v, v * v]) for k, v in gradients.items()}


#: what loops until something holds, or factorises a matrix
SEARCHES = {
    "lbfgs": lambda o: o.lbfgs(LR),
    "scale_by_backtracking_linesearch": lambda o: o.scale_by_backtracking_linesearch(5),
    "scale_by_zoom_linesearch": lambda o: o.scale_by_zoom_linesearch(5),
    "contrib.galore": lambda o: o.contrib.galore(LR, 2),
    "contrib.scale_by_galore": lambda o: o.contrib.scale_by_galore(2),
}

# ---- schedules -------------------------------------------------------------------------------------------------------

SCHEDULES = {
    "constant_schedule": lambda o: o.constant_schedule(0.1),
    "cosine_decay_schedule": lambda o: o.cosine_decay_schedule(0.1, 8, 0.05, 1.5),
    "cosine_onecycle_schedule": lambda o: o.cosine_onecycle_schedule(8, 0.1),
    "exponential_decay": lambda o: o.exponential_decay(0.1, 3, 0.5, 1, staircase=True),
    "join_schedules": lambda o: o.join_schedules([o.linear_schedule(0.0, 0.1, 3), o.constant_schedule(0.1)], [3]),
    "linear_onecycle_schedule": lambda o: o.linear_onecycle_schedule(8, 0.1),
    "linear_schedule": lambda o: o.linear_schedule(0.1, 0.01, 5, 1),
    "piecewise_constant_schedule": lambda o: o.piecewise_constant_schedule(0.1, {3: 0.5, 6: 0.1}),
    "piecewise_interpolate_schedule": lambda o: o.schedules.piecewise_interpolate_schedule("cosine", 0.1, {3: 0.5, 6: 0.1}),
    "polynomial_schedule": lambda o: o.polynomial_schedule(0.1, 0.01, 2, 5, 1),
    "sgdr_schedule": lambda o: o.sgdr_schedule(
        [{"init_value": 0.0, "peak_value": 0.1, "decay_steps": 4, "warmup_steps": 2, "end_value": 0.0}] * 2
    ),
    "warmup_constant_schedule": lambda o: o.warmup_constant_schedule(0.0, 0.1, 3),
    "warmup_cosine_decay_schedule": lambda o: o.warmup_cosine_decay_schedule(0.0, 0.1, 3, 8, 0.01),
    "warmup_exponential_decay_schedule": lambda o: o.warmup_exponential_decay_schedule(0.0, 0.1, 3, 2, 0.5),
}

# ---- functions of arrays ---------------------------------------------------------------------------------------------

ARRAYS = {
    "x": _normal(4, 3),
    "y": _normal(4, 3),
    "z": _normal(4, 3),
    "v": _normal(4),
    "sign": np.float32([1, -1, 1, -1]),
    "classes": np.int32([0, 2, 1, 1]),
    "binary": np.float32([1, 0, 0, 1]),
    "p": _softmax(_normal(4, 3)),
    "q": _softmax(_normal(4, 3)),
    "scalar": np.float32(0.6),
    "step": np.int32(4),
    "spd": np.float32([[2, 0.5, 0], [0.5, 3, 0.2], [0, 0.2, 1]]),
    "rhs": np.float32([1, 2, 3]),
    "image": np.abs(_normal(2, 4, 4, 3)),
    "logits": _normal(2, 5, 4),
    "labels": np.int32([[1, 2, 3], [2, 2, 0]]),
    "label_paddings": np.float32([[0, 0, 0], [0, 0, 1]]),
    "logit_paddings": np.zeros((2, 5), np.float32),
    "tree": PARAMS,
    "other": {"b": _normal(3), "w": _normal(4, 3), "z": {"s": _normal(2, 2)}},
}

#: differentiable in all floating-point arrays that they use
LOSSES = {
    "binary_dice_loss": lambda o, a: o.losses.binary_dice_loss(a["v"], a["binary"]),
    "convex_kl_divergence": lambda o, a: o.losses.convex_kl_divergence(a["x"], a["p"]),
    "cosine_distance": lambda o, a: o.losses.cosine_distance(a["x"], a["y"], epsilon=1e-3),
    "cosine_similarity": lambda o, a: o.losses.cosine_similarity(a["x"], a["y"]),
    "ctc_loss": lambda o, a: o.losses.ctc_loss(a["logits"], a["logit_paddings"], a["labels"], a["label_paddings"]),
    "ctc_loss_with_forward_probs": lambda o, a: o.losses.ctc_loss_with_forward_probs(
        a["logits"], a["logit_paddings"], a["labels"], a["label_paddings"]
    )[0],
    "dice_loss": lambda o, a: o.losses.dice_loss(a["image"], a["image"] > 0.5),
    "generalized_kl_divergence": lambda o, a: o.losses.generalized_kl_divergence(a["x"], a["p"]),
    "hinge_loss": lambda o, a: o.losses.hinge_loss(a["v"], a["sign"]),
    "huber_loss": lambda o, a: o.losses.huber_loss(a["x"], a["y"], delta=0.5),
    "kl_divergence": lambda o, a: o.losses.kl_divergence(a["x"], a["p"]),
    "kl_divergence_with_log_targets": lambda o, a: o.losses.kl_divergence_with_log_targets(a["x"], a["y"]),
    "l2_loss": lambda o, a: o.losses.l2_loss(a["x"], a["y"]),
    "log_cosh": lambda o, a: o.losses.log_cosh(a["x"], a["y"]),
    "multiclass_generalized_dice_loss": lambda o, a: o.losses.multiclass_generalized_dice_loss(a["image"], a["image"] > 0.5),
    "multiclass_hinge_loss": lambda o, a: o.losses.multiclass_hinge_loss(a["x"], a["classes"]),
    "multiclass_perceptron_loss": lambda o, a: o.losses.multiclass_perceptron_loss(a["x"], a["classes"]),
    "multiclass_sparsemax_loss": lambda o, a: o.losses.multiclass_sparsemax_loss(a["x"], a["classes"]),
    "ntxent": lambda o, a: o.losses.ntxent(a["x"], a["classes"]),
    "perceptron_loss": lambda o, a: o.losses.perceptron_loss(a["v"], a["sign"]),
    "poly_loss_cross_entropy": lambda o, a: o.losses.poly_loss_cross_entropy(a["x"], a["p"]),
    "ranking_softmax_loss": lambda o, a: o.losses.ranking_softmax_loss(a["x"], a["p"]),
    "safe_softmax_cross_entropy": lambda o, a: o.losses.safe_softmax_cross_entropy(a["x"], a["p"]),
    "sigmoid_binary_cross_entropy": lambda o, a: o.losses.sigmoid_binary_cross_entropy(a["x"], a["p"]),
    "sigmoid_focal_loss": lambda o, a: o.losses.sigmoid_focal_loss(a["x"], a["p"], alpha=0.25),
    "smooth_labels": lambda o, a: o.losses.smooth_labels(a["p"], 0.1),
    "softmax_cross_entropy": lambda o, a: o.losses.softmax_cross_entropy(a["x"], a["p"]),
    "softmax_cross_entropy_with_integer_labels": lambda o, a: o.losses.softmax_cross_entropy_with_integer_labels(
        a["x"], a["classes"]
    ),
    "sparsemax_loss": lambda o, a: o.losses.sparsemax_loss(a["v"], a["binary"]),
    "squared_error": lambda o, a: o.losses.squared_error(a["x"], a["y"]),
    "triplet_margin_loss": lambda o, a: o.losses.triplet_margin_loss(a["x"], a["y"], a["z"]),
}

PROJECTIONS = {
    "projection_box": lambda o, a: o.projections.projection_box(a["x"], -0.5, 0.5),
    "projection_halfspace": lambda o, a: o.projections.projection_halfspace(a["x"], a["y"], 0.1),
    "projection_hypercube": lambda o, a: o.projections.projection_hypercube(a["x"], 0.5),
    "projection_hyperplane": lambda o, a: o.projections.projection_hyperplane(a["x"], a["y"], 0.1),
    "projection_l1_ball": lambda o, a: o.projections.projection_l1_ball(a["tree"], 2.0),
    "projection_l1_sphere": lambda o, a: o.projections.projection_l1_sphere(a["tree"], 2.0),
    "projection_l2_ball": lambda o, a: o.projections.projection_l2_ball(a["tree"], a["scalar"]),
    "projection_l2_sphere": lambda o, a: o.projections.projection_l2_sphere(a["tree"], 2.0),
    "projection_linf_ball": lambda o, a: o.projections.projection_linf_ball(a["tree"], 0.5),
    "projection_non_negative": lambda o, a: o.projections.projection_non_negative(a["tree"]),
    "projection_simplex": lambda o, a: o.projections.projection_simplex(a["tree"], 1.5),
    "projection_vector": lambda o, a: o.projections.projection_vector(a["x"], a["y"]),
}

TREES = {
    "add": lambda t, a: t("add")(a["tree"], a["other"], a["tree"]),
    "add_scale": lambda t, a: t("add_scale")(a["tree"], a["scalar"], a["other"]),
    "allclose": lambda t, a: t("allclose")(a["tree"], a["other"]),
    "batch_shape": lambda t, a: t("batch_shape")(a["tree"], (2,)),
    "bias_correction": lambda t, a: t("bias_correction")(a["tree"], 0.9, a["step"]),
    "cast": lambda t, a: t("cast")(a["tree"], "bfloat16"),
    "cast_like": lambda t, a: t("cast_like")({"k": a["x"]}, {"k": a["classes"]}),
    "clip": lambda t, a: t("clip")(a["tree"], -0.5, 0.5),
    "conj": lambda t, a: t("conj")(a["tree"]),
    "div": lambda t, a: t("div")(a["tree"], a["other"]),
    "full_like": lambda t, a: t("full_like")(a["tree"], 3.0),
    "get": lambda t, a: t("get")(a["tree"], "s"),
    "get_all_with_path": lambda t, a: [v for _, v in t("get_all_with_path")(a["tree"], "s")],
    "max": lambda t, a: t("max")(a["tree"]),
    "min": lambda t, a: t("min")(a["tree"]),
    "mul": lambda t, a: t("mul")(a["tree"], a["other"]),
    "norm": lambda t, a: [t("norm")(a["tree"]), t("norm")(a["tree"], 1), t("norm")(a["tree"], squared=True)],
    "ones_like": lambda t, a: t("ones_like")(a["tree"]),
    "real": lambda t, a: t("real")(a["tree"]),
    "scale": lambda t, a: t("scale")(a["scalar"], a["tree"]),
    "set": lambda t, a: t("set")(a["tree"], s=a["scalar"]),
    "size": lambda t, a: t("size")(a["tree"]),
    "sub": lambda t, a: t("sub")(a["tree"], a["other"]),
    "sum": lambda t, a: t("sum")(a["tree"]),
    "update_infinity_moment": lambda t, a: t("update_infinity_moment")(a["tree"], a["other"], 0.9, 1e-3),
    "update_moment": lambda t, a: t("update_moment")(a["tree"], a["other"], 0.9, 2),
    "update_moment_per_elem_norm": lambda t, a: t("update_moment_per_elem_norm")(a["tree"], a["other"], 0.9, 2),
    "vdot": lambda t, a: t("vdot")(a["tree"], a["other"]),
    "where": lambda t, a: t("where")(a["scalar"] > 0.5, a["tree"], a["other"]),
    "zeros_like": lambda t, a: t("zeros_like")(a["tree"]),
}

FUNCTIONS = {
    **{f"losses.{name}": row for name, row in LOSSES.items()},
    **{f"projections.{name}": row for name, row in PROJECTIONS.items()},
    **{
        f"tree.{name}": lambda o, a, row=row: row(lambda n: getattr(o.tree, n), a) for name, row in TREES.items()
    },
    "apply_updates": lambda o, a: o.apply_updates(a["tree"], a["other"]),
    "bias_correction": lambda o, a: o.bias_correction(a["tree"], 0.9, a["step"]),
    "contrib.schedule_free_eval_params": lambda o, a: o.contrib.schedule_free_eval_params(
        o.contrib.schedule_free_sgd(0.1).init(a["tree"]), a["other"]
    ),
    "global_norm": lambda o, a: o.global_norm(a["tree"]),
    "incremental_update": lambda o, a: o.incremental_update(a["tree"], a["other"], 0.1),
    "init_empty_state": lambda o, a: o.init_empty_state(a["tree"]),
    "microbatching.reshape_batch_axis": lambda o, a: o.microbatching.reshape_batch_axis(a["x"], 2),
    "nnls": lambda o, a: o.nnls(a["spd"], a["rhs"], 5),
    "per_example_global_norm_clip": lambda o, a: o.per_example_global_norm_clip([a["x"], a["y"]], 0.5),
    "per_example_layer_norm_clip": lambda o, a: o.per_example_layer_norm_clip([a["x"], a["y"]], 0.5),
    "periodic_update": lambda o, a: o.periodic_update(a["tree"], a["other"], a["step"], 2),
    "safe_increment": lambda o, a: o.safe_increment(a["step"]),
    "safe_int32_increment": lambda o, a: o.safe_int32_increment(a["step"]),
    "safe_norm": lambda o, a: o.safe_norm(a["x"], 0.1),
    "safe_root_mean_squares": lambda o, a: o.safe_root_mean_squares(a["x"], 0.1),
    "scale_gradient": lambda o, a: o.scale_gradient(a["x"], 0.5),
    "skip_large_updates": lambda o, a: o.skip_large_updates(a["tree"], a["step"], a["other"], 1.0),
    "skip_not_finite": lambda o, a: o.skip_not_finite(a["tree"], a["step"], a["other"]),
    "transforms.unitwise_clip": lambda o, a: o.transforms.unitwise_clip(
        o.transforms.unitwise_norm(a["x"]), o.transforms.unitwise_norm(a["y"]), a["x"]
    ),
    "transforms.unitwise_norm": lambda o, a: o.transforms.unitwise_norm(a["x"]),
    "update_infinity_moment": lambda o, a: o.update_infinity_moment(a["tree"], a["other"], 0.9, 1e-3),
    "update_moment": lambda o, a: o.update_moment(a["tree"], a["other"], 0.9, 2),
    "update_moment_per_elem_norm": lambda o, a: o.update_moment_per_elem_norm(a["tree"], a["other"], 0.9, 2),
}

#: other names of functions above
ALIASES = {
    f"tree_utils.tree_{name}": lambda o, a, row=row: row(lambda n: getattr(o.tree_utils, f"tree_{n}"), a)
    for name, row in TREES.items()
}

LOOPING_FUNCTIONS = {
    "assignment.base_hungarian_algorithm": lambda o, a: o.assignment.base_hungarian_algorithm(a["spd"]),
    "assignment.hungarian_algorithm": lambda o, a: o.assignment.hungarian_algorithm(a["spd"]),
    "matrix_inverse_pth_root": lambda o, a: o.matrix_inverse_pth_root(a["spd"], 2),
    "power_iteration": lambda o, a: o.power_iteration(a["spd"]),
}

#: names with a test of their own, or that only combine functions of the user's
ELSEWHERE = {
    "multi_normal",
    "tree_map_params",
    "value_and_grad_from_state",
    "contrib.hutchinson_estimator_diag_hessian",
    "losses.make_fenchel_young_loss",
    "microbatch",
    "microbatching.micro_grad",
    "microbatching.micro_vmap",
    "perturbations.make_perturbed_fun",
    "schedules.Schedule",
    "second_order.fisher_diag",
    "second_order.hessian_diag",
    "second_order.hvp",
    "tree.random_like",
    "tree.split_key_like",
    "tree.unwrap_random_key_data",
    "tree.dtype",
    "tree.map_params",
    "tree_utils.tree_dtype",
}
