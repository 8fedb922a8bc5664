"""Runs of a network on several batches at once, which wait for each other at some of its modules.

What is decided at a module from all batches, such as new weights, then holds for all that follows, and
each batch passes the network once.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .errors import UnsupportedError

_SUMS = {"add", "add_", "__add__", "__radd__", "__iadd__"}
_LOOKS = {"__get__", "size", "dim", "__len__"}


class Stop(NamedTuple):
    """Where runs wait: at the call of a module or, if `adds`, where its result is added to `beside`."""

    path: str
    input: Tensor
    beside: Optional[Tensor] = None


class _Stopped(BaseException):
    """Ends a thread whose run is not needed any longer."""


class _Sums(TorchFunctionMode):
    """Tells when the result of a module is first used, and whether by adding it to another tensor."""

    def __init__(self, at: Callable[[Tensor, Optional[Tensor]], Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.watched: Optional[Tensor] = None
        self._at = at

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        watched = self.watched
        if watched is None or name in _LOOKS or not any(one is watched for one in args):
            return func(*args, **kwargs)
        if name == "dropout" and not kwargs.get("training", args[2:3] != (False,)):
            self.watched = func(*args, **kwargs)  # in evaluation mode it changes nothing
            return self.watched
        self.watched = None
        others = [one for one in args if isinstance(one, Tensor) and one is not watched]
        adds = name in _SUMS and not kwargs and len(args) == 2 and len(others) == 1
        beside = others[0] if adds and others[0].shape == watched.shape else None
        now = self._at(watched, beside)
        return func(*(now if one is watched else one for one in args), **kwargs)


def added_by(model: nn.Module, paths: Sequence[str], run: Callable[[], Any]) -> Dict[str, bool]:
    """Returns the modules that a run calls once, in the order of their calls, and whether all that
    becomes of a result is that it is added to something of its shape."""
    calls: Dict[str, int] = {}
    adds: Dict[str, bool] = {}
    current = ""

    def used(result: Tensor, beside: Optional[Tensor]) -> Tensor:
        adds[current] = beside is not None
        return result

    mode = _Sums(used)

    def called(path: str) -> Callable[..., None]:
        def after(module: nn.Module, args: Any, result: Any) -> None:
            nonlocal current
            calls[path], current = calls.get(path, 0) + 1, path
            mode.watched = result if isinstance(result, Tensor) else None

        return after

    handles = [model.get_submodule(path).register_forward_hook(called(path)) for path in paths]
    try:
        with mode:
            run()
    finally:
        for handle in handles:
            handle.remove()
    return {path: adds.get(path, False) for path, count in calls.items() if count == 1}


class Lockstep:
    """Runs that advance together from stop to stop; one thread each, of which one runs at a time.

    Args:
        batches: of each run.
        run: runs the model on a batch, in its thread.
        entries: modules at whose call the runs wait.
        layers: modules at whose results the runs wait, and whether there they are added to something.
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Sequence[Any],
        run: Callable[[int, Any], None],
        entries: Sequence[str] = (),
        layers: Mapping[str, bool] = {},
    ) -> None:
        self.stops: List[Optional[Stop]] = [None] * len(batches)
        self._go = [threading.Semaphore(0) for _ in batches]
        self._stopped = threading.Semaphore(0)
        self._own = threading.local()
        self._ends = False
        self._error: Optional[BaseException] = None
        self._handles = [
            model.get_submodule(path).register_forward_pre_hook(self._entered(path))
            for path in entries
        ]
        for path, adds in layers.items():
            module = model.get_submodule(path)
            if adds:
                self._handles.append(module.register_forward_hook(self._left(path)))
            else:
                self._handles.append(module.register_forward_pre_hook(self._entered(path)))
        self._threads = [
            threading.Thread(target=self._run, args=(run, i, batch), daemon=True)
            for i, batch in enumerate(batches)
        ]
        for thread in self._threads:
            thread.start()

    def advance(self) -> Optional[str]:
        """Lets all runs go on to their next stop; returns its path, None at the end.

        Raises:
            UnsupportedError: a run failed, or they come to different stops.
        """
        for go in self._go:
            go.release()
            self._stopped.acquire()
            if self._error is not None:
                kind, why = type(self._error).__name__, self._error
                raise UnsupportedError(
                    f"calibration: the network does not run on a batch of samples: {kind}: {why}"
                ) from self._error
        paths: Set[Optional[str]] = {stop and stop.path for stop in self.stops}
        if len(paths) > 1:
            raise UnsupportedError("calibration: batches take different ways through the network")
        return paths.pop() if paths else None

    def __enter__(self) -> "Lockstep":
        return self

    def __exit__(self, *_: Any) -> None:
        self._ends = True
        for go, thread in zip(self._go, self._threads):
            go.release()
            thread.join()
        for handle in self._handles:
            handle.remove()

    def _run(self, run: Callable[[int, Any], None], number: int, batch: Any) -> None:
        self._own.number, self._own.layer = number, None
        self._own.mode = _Sums(self._added)
        self._go[number].acquire()
        try:
            if not self._ends:
                with self._own.mode, torch.no_grad():
                    run(number, batch)
        except _Stopped:
            pass
        except BaseException as error:  # shown by the thread that advances
            self._error = error
        self.stops[number] = None
        self._stopped.release()

    def _wait(self, stop: Stop) -> None:
        number = self._own.number
        self.stops[number] = stop
        self._stopped.release()
        self._go[number].acquire()
        if self._ends:
            raise _Stopped

    def _entered(self, path: str) -> Callable[..., None]:
        def before(module: nn.Module, args: Any) -> None:
            if hasattr(self._own, "number"):
                self._wait(Stop(path, args[0] if args else torch.empty(0)))

        return before

    def _left(self, path: str) -> Callable[..., None]:
        def after(module: nn.Module, args: Any, result: Any) -> None:
            if hasattr(self._own, "number"):
                self._own.layer = path, module, args[0]
                self._own.mode.watched = result

        return after

    def _added(self, result: Tensor, beside: Optional[Tensor]) -> Tensor:
        """Waits, and returns what the module now returns."""
        path, module, given = self._own.layer
        self._wait(Stop(path, given, beside))
        now: Tensor = module.forward(given)
        return now
