"""Every public name of optax that computes, and arguments for it: `name -> function of the namespace`.

A row of TRANSFORMATIONS builds a transformation; one of FUNCTIONS gives (function, arguments). Both are run once with the package
optax under `jax.jit` and once with `funcml.optax`. `OTHER` are the names that compute nothing; together they are all there is.
"""

from __future__ import annotations

import numpy as np

rng = np.random.default_rng(1)


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


PARAMS = {"b": normal(3), "w": normal(4, 3), "z": {"s": np.float32(0.7)}}
MATRIX = {"w": normal(4, 4), "v": normal(5, 3)}


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
}

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
    "lookahead": lambda o: o.lookahead(o.sgd(LR), 2, 0.5),
    "masked": lambda o: o.masked(o.adam(LR), lambda params: {k: k != "b" for k in params}),
    "measure_with_ema": lambda o: o.measure_with_ema(lambda updates, state, **extra: o.global_norm(updates), 0.9),
    "monitor": lambda o: o.monitor({"norm": lambda updates, state, **extra: o.global_norm(updates)}),
    "multi_transform": lambda o: o.multi_transform(
        {"a": o.adam(LR), "s": o.sgd(LR)}, {"b": "a", "w": "s", "z": "a"}
    ),
    "named_chain": lambda o: o.named_chain(("clip", o.clip(0.5)), ("adam", o.adam(LR))),
    "normalize_by_update_norm": lambda o: o.normalize_by_update_norm(),
    "partition": lambda o: o.partition({"a": o.adam(LR), "s": o.set_to_zero()}, lambda p: {k: "as"[k == "w"] for k in p}),
    "per_example_global_norm_clip": lambda o: o.per_example_global_norm_clip(0.3),
    "per_example_layer_norm_clip": lambda o: o.per_example_layer_norm_clip(0.3),
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
    "snapshot": lambda o: o.snapshot("norm", lambda updates, state, **extra: o.global_norm(updates)),
    "stateless": lambda o: o.stateless(lambda updates, params: o.tree.scale(0.5, updates)),
    "stateless_with_tree_map": lambda o: o.stateless_with_tree_map(lambda g, p: g * 0.5),
    "trace": lambda o: o.trace(0.9),
    "transforms.unitwise_clip": None,
    "with_extra_args_support": lambda o: o.with_extra_args_support(o.adam(LR)),
    "zero_nans": lambda o: o.zero_nans(),
    "MultiSteps": lambda o: o.MultiSteps(o.adam(LR), 2),
    "MultiSteps.gradient_transformation": lambda o: o.MultiSteps(o.adam(LR), 2).gradient_transformation(),
    "MultiSteps.skip_not_finite": lambda o: o.MultiSteps(o.adam(LR), 2, should_skip_update_fn=o.skip_not_finite),
    "contrib.differentially_private_aggregate": lambda o: o.contrib.differentially_private_aggregate(0.5, 1.1, 3),
    "contrib.scale_by_acprop": lambda o: o.contrib.scale_by_acprop(),
    "contrib.scale_by_ademamix": lambda o: o.contrib.scale_by_ademamix(),
    "contrib.scale_by_adopt": lambda o: o.contrib.scale_by_adopt(),
    "contrib.scale_by_cocob": lambda o: o.contrib.scale_by_cocob(),
    "contrib.scale_by_galore": None,
    "contrib.scale_by_madgrad": lambda o: o.contrib.scale_by_madgrad(),
    "contrib.scale_by_muon": None,
    "contrib.scale_by_simplified_ademamix": lambda o: o.contrib.scale_by_simplified_ademamix(),
}
