"""Trains a small network on handwritten digits, says how well it reads digits it has not seen, and draws a picture.

    python examples/digits.py --epochs 20 --batch 64 --seed 0 --out digits.png

The data is scikit-learn's: 1797 images of 8 x 8 pixels. Model and loss are written for one image. `vmap` makes them functions
of a batch, `grad` gives the gradient, and `vmap` of `grad` that of each image by itself: its norm tells which images are hard.
"""

import argparse
import statistics
import time

import sklearn.datasets
from matplotlib.figure import Figure
from tqdm import tqdm

import funcml as fm
import funcml.numpy as jnp

LAYERS = (64, 256, 256, 10)
SMOOTHING = 0.1


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
    """The cross entropy of one image with its label, a little of which is spread over all ten digits."""
    target = (1 - SMOOTHING) * fm.nn.one_hot(label, 10) + SMOOTHING / 10
    return -jnp.dot(target, fm.nn.log_softmax(logits(params, image)))


def batch_loss(params, images, labels):
    return fm.vmap(loss, in_axes=(None, 0, 0))(params, images, labels).mean()


def read(params, image):
    return logits(params, image).argmax()


def gradient_norm(params, image, label):
    """The length of the gradient of one image's loss: how much this image would change the network."""
    gradient = fm.grad(loss)(params, image, label)
    return jnp.sqrt(sum((g**2).sum() for g in fm.tree.leaves(gradient)))


read_all = fm.jit(fm.vmap(read, in_axes=(None, 0)))
gradient_norms = fm.jit(fm.vmap(gradient_norm, in_axes=(None, 0, 0)))


def train(key, params, images, labels, epochs, batch):
    """The trained parameters, and for each step its loss and its seconds."""
    steps = len(labels) // batch
    schedule = fm.optax.warmup_cosine_decay_schedule(0.0, 3e-3, steps, epochs * steps + 1)
    optimiser = fm.optax.adamw(schedule, weight_decay=0.1)

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


def draw(out, losses, images, labels, predicted, hardest):
    """The loss of each step; then ten held-out digits as they are read, and the ten hardest."""
    rows = {"as read": range(10), "hardest": hardest[:10]}
    figure = Figure(figsize=(10, 6), layout="constrained")
    grid = figure.add_gridspec(2 + len(rows), 10)
    curve = figure.add_subplot(grid[:2, :])
    curve.plot(losses, linewidth=1)
    curve.set(xlabel="step", ylabel="loss of the batch")
    for row, (name, chosen) in enumerate(rows.items(), start=2):
        for column, i in enumerate(chosen):
            said, true = int(predicted[i]), int(labels[i])
            axes = figure.add_subplot(grid[row, column], xticks=[], yticks=[], ylabel="" if column else name)
            axes.imshow(images[i], cmap="gray_r")
            axes.set_title(f"{said}" if said == true else f"{said}, is {true}", color="green" if said == true else "red")
    figure.savefig(out, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="digits.png", help="where to save the picture")
    args = parser.parse_args()
    if args.epochs < 1 or not 1 <= args.batch <= 700:
        parser.error("--epochs must be at least 1, and --batch between 1 and 700")

    start = time.perf_counter()
    data_key, init_key, train_key = fm.random.split(fm.random.key(args.seed), 3)
    (images, labels), (new_images, new_labels) = load(data_key)
    params, losses, seconds = train(train_key, init(init_key), images, labels, args.epochs, args.batch)

    predicted = read_all(params, new_images)
    norms = gradient_norms(params, new_images, new_labels)
    hardest = norms.argsort()[::-1].tolist()
    draw(args.out, losses, new_images, new_labels, predicted, hardest)

    print(f"\nThe loss of one image, as a program:\n\n{fm.make_jaxpr(loss)(params, images[0], labels[0])}\n")
    print(f"The hardest of the {len(new_labels)} held-out digits, by the norm of their gradient:")
    for i in hardest[:5]:
        print(f"  number {i:3}: norm {norms[i]:5.2f}, read as {predicted[i]}, is {new_labels[i]}")
    print(f"\nAccuracy on the held-out digits: {(predicted == new_labels).mean():.2%}")
    later, total = statistics.median(seconds[1:]), time.perf_counter() - start
    print(f"First step {seconds[0]:.2f} s, for it compiles; later ones {1e3 * later:.2f} ms; all of it {total:.1f} s")
    print("Picture:", args.out)


if __name__ == "__main__":
    main()
