"""Who may import whom in a package laid out like funcml: `violations : root folder -> [sentence]`.

    core <- dtypes, tree <- primitives <- transforms <- control_flow <- {lowering, api, ...} <- __init__

A module imports from its own layer or from one to the left, never in a circle and never inside a function.
The source is parsed, not run: an import under `if TYPE_CHECKING` is none, and a docstring counts for nothing.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

LAYERS = (
    ("core",),
    ("number_dtypes", "dtypes", "tree_errors", "tree_order", "tree", "tree_util"),
    ("primitives",),
    ("transforms",),
    ("control_flow",),
)
FACE = len(LAYERS)  # lowering, api, numpy, ...: everything that stands in no layer above
ROOT = FACE + 1  # the package's own __init__

IMPORTING_CALLS = ("importlib.import_module", "import_module", "__import__")

# Where these may be imported, inside a function too: they are loaded at their first use.
BACKEND = {
    "core.registry": {"jax"},
    "interop": {"jax", "jaxlib", "optax"},
    "lowering": {"jax", "jaxlib"},
    "optax": {"optax"},
}
PRIVATE = "lowering.pjrt"  # where names may be used that jax and jaxlib do not publish
JAX_ITSELF = {  # what makes jax more than a backend; only interop may speak of it
    "numpy", "lax", "scipy", "nn", "random", "jit", "grad", "value_and_grad", "jvp", "vjp", "linearize",
    "vmap", "pmap", "jacfwd", "jacrev", "hessian", "make_jaxpr", "eval_shape", "checkpoint",
    "custom_jvp", "custom_vjp",
}


@dataclass(frozen=True)
class Import:
    target: str  # the module, or for what is no module of the package, the dotted name
    line: int
    in_function: bool


@dataclass(frozen=True)
class Module:
    name: str  # package.sub.module
    path: Path
    imports: tuple[Import, ...]
    mentions: tuple[tuple[str, int], ...]  # dotted names rooted at jax or jaxlib, and their lines

    @property
    def place(self) -> str:
        """The name below the package: `lowering.pjrt`; empty for the package itself."""
        return self.name.partition(".")[2]


def source_files(root: Path) -> dict[str, Path]:
    """Module name -> file, for every module below the package folder `root`."""
    files = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


def read_package(root: Path) -> list[Module]:
    files = source_files(root)
    return [read_module(name, path, files) for name, path in files.items()]


def read_module(name: str, path: Path, files: dict[str, Path]) -> Module:
    tree = ast.parse(path.read_text(), str(path))
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imports: list[Import] = []
    aliases = {"jax": "jax", "jaxlib": "jaxlib"}
    nodes = list(statements_and_expressions(tree, in_function=False))
    for node, in_function in nodes:
        for target, alias in imported(node, package, files):
            imports.append(Import(target, node.lineno, in_function))
            if is_backend(target):
                aliases[alias] = target
    mentions = [(i.target, i.line) for i in imports if is_backend(i.target)]
    mentions += [(dotted, node.lineno) for node, _ in nodes if (dotted := dotted_name(node, aliases))]
    return Module(name, path, tuple(imports), tuple(mentions))


def statements_and_expressions(node: ast.AST, in_function: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Each node below `node`, with whether it runs inside a function; `if TYPE_CHECKING` bodies left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield other, in_function
                yield from statements_and_expressions(other, in_function)
            continue
        yield child, in_function
        inside = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from statements_and_expressions(child, inside)


def imported(node: ast.AST, package: str, files: dict[str, Path]) -> Iterator[tuple[str, str]]:
    """(target, the name it is bound to) of an import statement or of a call that imports."""
    if isinstance(node, ast.Import):
        for name in node.names:
            yield name.name, name.asname or ""
    elif isinstance(node, ast.ImportFrom):
        base = absolute(node.module, node.level, package)
        for name in node.names:
            below = f"{base}.{name.name}"
            own = base.partition(".")[0] == package.partition(".")[0]
            yield (below if below in files or not own else base), name.asname or name.name
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in IMPORTING_CALLS:
        argument = node.args[0] if node.args else None
        known = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        yield (argument.value if known else "a name known only at run time"), ""


def absolute(module: str | None, level: int, package: str) -> str:
    if not level:
        return module or ""
    parts = package.split(".")
    return ".".join(parts[: len(parts) - level + 1] + ([module] if module else []))


def dotted_name(node: ast.AST, aliases: dict[str, str]) -> str | None:
    """`jb.get_backend` -> `jax.extend.backend.get_backend`, where jb is bound to that module."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if names and isinstance(node, ast.Name) and node.id in aliases:
        return ".".join([aliases[node.id], *reversed(names)])
    return None


def rank(place: str) -> int:
    if not place:
        return ROOT
    top = place.partition(".")[0]
    return next((i for i, layer in enumerate(LAYERS) if top in layer), FACE)


def violations(root: Path) -> list[str]:
    package = read_package(root)
    rules = (upward, lazy, cycles, backend)
    return list(dict.fromkeys(sentence for rule in rules for sentence in rule(package)))


def upward(package: list[Module]) -> Iterator[str]:
    for module in package:
        for own in own_imports(module):
            place = own.target.partition(".")[2]
            if rank(place) > rank(module.place):
                yield f"{module.path}:{own.line}: upward import of {own.target}"


def lazy(package: list[Module]) -> Iterator[str]:
    for module in package:
        for i in module.imports:
            if i.in_function and i.target.partition(".")[0] not in loadable(module):
                yield f"{module.path}:{i.line}: import inside a function of {i.target}"


def cycles(package: list[Module]) -> Iterator[str]:
    """One circle, if there is any. Importing a.b.c runs a.b too, unless the importer stands in a.b itself."""
    graph = {}
    for module in package:
        reached = set()
        for i in own_imports(module):
            parts = i.target.split(".")
            through = (".".join(parts[:k]) for k in range(2, len(parts)))
            reached |= {i.target, *(name for name in through if not module.name.startswith(f"{name}."))}
        graph[module.name] = reached - {module.name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield "cycle: " + " <- ".join(error.args[1])


def backend(package: list[Module]) -> Iterator[str]:
    for module in package:
        for name, line in module.mentions:
            at = f"{module.path}:{line}"
            parts = name.split(".")
            if parts[0] not in loadable(module):
                yield f"{at}: {name}: only {', '.join(BACKEND)} may use the backend"
            elif parts[0] == "jax" and JAX_ITSELF & set(parts[1:2]) and not is_in(module, "interop"):
                yield f"{at}: {name}: only interop may speak of what jax is besides a backend"
            elif is_private(parts) and not is_in(module, PRIVATE):
                yield f"{at}: {name}: private to jax; only {PRIVATE} may use it"


def loadable(module: Module) -> set[str]:
    """What the module may import at its first use."""
    return {name for place, names in BACKEND.items() if is_in(module, place) for name in names}


def is_in(module: Module, place: str) -> bool:
    return f"{module.place}.".startswith(f"{place}.")


def is_backend(name: str) -> bool:
    return name.partition(".")[0] in ("jax", "jaxlib")


def is_private(parts: list[str]) -> bool:
    return parts[0] == "jaxlib" or any(p.startswith("_") and not p.endswith("__") for p in parts)


def own_imports(module: Module) -> list[Import]:
    root = module.name.partition(".")[0]
    return [i for i in module.imports if i.target.partition(".")[0] == root]
