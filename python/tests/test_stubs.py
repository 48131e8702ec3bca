"""The stubs of the native half name what there is, with the parameters that it takes."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import xcpnet
from xcpnet import _native

STUBS = ast.parse((Path(xcpnet.__file__).parent / "_native.pyi").read_text())
INTERFACE = {"__arrow_c_stream__", "__arrow_c_schema__"}


def public(of: Any) -> set[str]:
    return {name for name in vars(of) if not name.startswith("_") or name in INTERFACE}


def parameters(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args]


def compare(stub: ast.FunctionDef, real: Any) -> None:
    try:
        signature = inspect.signature(real)
    except (TypeError, ValueError):  # a property, or a method that tells none
        return
    assert parameters(stub) == list(signature.parameters), stub.name


def test_functions_and_classes() -> None:
    functions = {node.name: node for node in STUBS.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in STUBS.body if isinstance(node, ast.ClassDef)}
    constants = {
        node.target.id
        for node in STUBS.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    assert set(functions) | set(classes) | constants == public(_native)
    for name, function in functions.items():
        compare(function, getattr(_native, name))
    for name, stub in classes.items():
        own = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
        real = getattr(_native, name)
        assert {n for n in own if not n.startswith("__") or n in INTERFACE} == public(real), name
        for method, node in own.items():
            if method in public(real):
                compare(node, getattr(real, method))
