"""StableHLO of `primitives.fft`."""

from __future__ import annotations

from funcml.core.avals import ShapedArray, shaped
from funcml.lowering.emit import lowers, numbers, tensor_type
from funcml.primitives import fft
from funcml.primitives.fft import FftType


@lowers(fft.fft_p)
def _fft(emit, eqn, operands):
    (name,), (x,), (out,) = operands, eqn.invars, eqn.outvars
    fft_type, lengths = eqn.params["fft_type"], eqn.params["fft_lengths"]
    if out.aval.size == 0 or x.aval.size == 0:
        return emit.constant(0, out.aval)
    if fft_type is FftType.IRFFT and len(lengths) > 1 and emit.platform != "cpu":
        return _inverse_of_half(emit, name, x.aval, out.aval, lengths)
    return _transform(emit, name, x.aval, out.aval, fft_type, lengths)


def _transform(emit, x: str, aval: ShapedArray, out: ShapedArray, fft_type, lengths) -> str:
    return emit.op(
        f"stablehlo.fft {x}, type = {fft_type.name}, length = [{numbers(lengths)}] : "
        f"({tensor_type(aval)}) -> {tensor_type(out)}"
    )


# cuFFT takes for granted that the elements that stand for themselves are symmetric in every axis; a complex transform of the
# other axes and a half one of the last axis ask only for what the primitive promises.
def _inverse_of_half(emit, x: str, aval: ShapedArray, out: ShapedArray, lengths) -> str:
    last, first = aval.ndim - 1, aval.ndim - len(lengths)
    to_front = (*range(first), last, *range(first, last))
    back = (*range(first), *range(first + 1, last + 1), first)
    x, moved = _transposed(emit, x, aval, to_front)
    x = _transform(emit, x, moved, moved, FftType.IFFT, lengths[:-1])
    x, aval = _transposed(emit, x, moved, back)
    return _transform(emit, x, aval, out, FftType.IRFFT, lengths[-1:])


def _transposed(emit, x: str, aval: ShapedArray, order) -> tuple[str, ShapedArray]:
    out = shaped(tuple([aval.shape[i] for i in order]), aval.dtype)
    types = f"({tensor_type(aval)}) -> {tensor_type(out)}"
    return emit.op(f"stablehlo.transpose {x}, dims = [{numbers(order)}] : {types}"), out
