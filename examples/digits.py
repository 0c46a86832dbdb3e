"""Trains a small network on handwritten digits, says how well it reads digits it has not seen, and draws a picture.

    make demo                       or:   python examples/digits.py
    python examples/digits.py --epochs 100 --batch 32 --seed 1 --out picture.png

The data is scikit-learn's: 1797 images of 8 x 8 pixels. The model and its loss are written for one image; `vmap` makes
the loss of a batch of them, `grad` the gradient, and `vmap(grad(...))` the gradient of each image by itself, whose norm
tells which images the network finds hard.
"""

import argparse
import time

import matplotlib
import sklearn.datasets
from tqdm import tqdm

import funcml as fm
import funcml.numpy as jnp

matplotlib.use("Agg")  # writes files, opens no window
import matplotlib.pyplot as plt  # noqa: E402

LAYERS = (64, 128, 128, 10)


def load(key, held_out=360):
    """Images [n, 8, 8] with values in [0, 1] and their labels [n], shuffled: to train on, and held out."""
    digits = sklearn.datasets.load_digits()
    order = fm.random.permutation(key, len(digits.target))
    images = jnp.asarray(digits.images / 16, dtype="float32")[order]
    labels = jnp.asarray(digits.target, dtype="int32")[order]
    return (images[held_out:], labels[held_out:]), (images[:held_out], labels[:held_out])


def init(key):
    """Weights with variance 2 / fan-in, which keeps the variance from layer to layer under relu; biases 0."""
    keys = fm.random.split(key, len(LAYERS) - 1)
    return [
        {"w": fm.random.normal(k, (m, n)) * jnp.sqrt(2 / m), "b": jnp.zeros(n)}
        for k, m, n in zip(keys, LAYERS[:-1], LAYERS[1:], strict=True)
    ]


def logits(params, image):
    """[8, 8] -> [10]"""
    *hidden, last = params
    x = image.reshape(-1)
    for layer in hidden:
        x = fm.nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss(params, image, label):
    """The cross entropy -log p(label) of one image."""
    return -fm.nn.log_softmax(logits(params, image))[label]


def batch_loss(params, images, labels):
    return fm.vmap(loss, in_axes=(None, 0, 0))(params, images, labels).mean()


@fm.jit
def predict(params, images):
    return fm.vmap(logits, in_axes=(None, 0))(params, images).argmax(axis=-1)


@fm.jit
def gradient_norms(params, images, labels):
    """For each image: the length of the gradient of its own loss."""
    gradients = fm.vmap(fm.grad(loss), in_axes=(None, 0, 0))(params, images, labels)
    return jnp.sqrt(sum((g.reshape(len(images), -1) ** 2).sum(axis=1) for g in fm.tree.leaves(gradients)))


def train(key, params, images, labels, epochs, batch):
    """The trained parameters, and for each step its loss and its seconds."""
    steps = len(labels) // batch
    schedule = fm.optax.warmup_cosine_decay_schedule(0.0, 3e-3, steps, epochs * steps + 1)
    optimiser = fm.optax.adamw(schedule, weight_decay=1e-2)

    @fm.jit
    def step(params, state, images, labels):
        value, gradient = fm.value_and_grad(batch_loss)(params, images, labels)
        updates, state = optimiser.update(gradient, state, params)
        return fm.optax.apply_updates(params, updates), state, value

    state, losses, seconds = optimiser.init(params), [], []
    with tqdm(total=epochs * steps, unit="step") as bar:
        for epoch_key in fm.random.split(key, epochs):
            order = fm.random.permutation(epoch_key, len(labels))[: steps * batch]
            for chosen in order.reshape(steps, batch):
                start = time.perf_counter()
                params, state, value = step(params, state, images[chosen], labels[chosen])
                losses.append(float(value))
                seconds.append(time.perf_counter() - start)
                bar.update()
            bar.set_postfix(loss=f"{sum(losses[-steps:]) / steps:.4f}")
    return params, losses, seconds


def draw(out, losses, images, labels, predicted, norms):
    """The loss of each step; then some held-out digits, and those with the largest gradients."""
    rows = {"held out, as read": range(10), "largest gradients": norms.argsort()[::-1][:10].tolist()}
    figure = plt.figure(figsize=(10, 6), layout="constrained")
    grid = figure.add_gridspec(2 + len(rows), 10)
    curve = figure.add_subplot(grid[:2, :])
    curve.semilogy(losses, linewidth=0.8)
    curve.set(xlabel="step", ylabel="loss", title="training")
    for row, (title, chosen) in enumerate(rows.items(), start=2):
        for column, i in enumerate(chosen):
            axes = figure.add_subplot(grid[row, column])
            axes.imshow(images[i], cmap="gray_r")
            axes.set(xticks=[], yticks=[], ylabel="" if column else title)
            read, true = int(predicted[i]), int(labels[i])
            right = read == true
            axes.set_title(f"{read}" if right else f"{read}, is {true}", color="green" if right else "red", fontsize=10)
    figure.savefig(out, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="digits.png", help="where to save the picture")
    args = parser.parse_args()

    start = time.perf_counter()
    data_key, init_key, train_key = fm.random.split(fm.random.key(args.seed), 3)
    (images, labels), (new_images, new_labels) = load(data_key)
    params, losses, seconds = train(train_key, init(init_key), images, labels, args.epochs, args.batch)
    predicted = predict(params, new_images)
    norms = gradient_norms(params, new_images, new_labels)
    draw(args.out, losses, new_images, new_labels, predicted, norms)

    print("\nThe loss of one image, as a program:\n")
    print(fm.make_jaxpr(loss)(params, images[0], labels[0]))
    hardest = norms.argsort()[::-1][:5].tolist()
    print("\nHardest of the held-out digits, by the norm of their gradient:")
    for i in hardest:
        print(f"  number {i}: norm {norms[i]:.3g}, read as {predicted[i]}, is {new_labels[i]}")
    print(f"\nAccuracy on {len(new_labels)} held-out digits: {(predicted == new_labels).mean():.2%}")
    later = sorted(seconds[1:])[len(seconds) // 2 - 1] if seconds[1:] else seconds[0]
    print(f"First step {seconds[0]:.3f} s, later steps {later * 1e3:.3f} ms, all {time.perf_counter() - start:.1f} s")
    print(f"Picture: {args.out}")


if __name__ == "__main__":
    main()
