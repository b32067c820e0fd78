"""GPU kernels (Triton) behind the plain torch code of models, noise and solvers; this package knows nothing of SPDEs.

Triton comes with CUDA builds of torch only, so no module with kernels is imported before it is used. A layer asks

    if accel.kernels("norm", (x, weight), x.shape[-1]):

and runs plain torch code where the answer is None.
"""

from spdebench.accel.dispatch import can_use_kernels, kernels, module, on_gpu, without_kernels

__all__ = ["can_use_kernels", "kernels", "module", "on_gpu", "without_kernels"]
