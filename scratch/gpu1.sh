nvidia-smi | head -15; nproc; which nvidia-cuda-mps-control; python3 -c "import torch,triton;print(torch.__version__,triton.__version__)"
export PYTHONPATH=src OMP_NUM_THREADS=1
timeout 60 python3 benchmarks/phi43_step.py --device cuda 2>&1 | tail -15
export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps CUDA_MPS_LOG_DIRECTORY=/tmp/mpslog; mkdir -p /tmp/mps /tmp/mpslog; nvidia-cuda-mps-control -d && echo MPS started
python3 - <<'P'
import spdebench as sb, time
for s in (0.1,1.0):
    t=time.time(); p=sb.generate(sb.equation("phi41",sigma=s),n=1200,out="/tmp/d",device="cuda"); print(p,time.time()-t)
P
A=$(ls /tmp/d/*s0.1*.parquet); B=$(ls /tmp/d/*-s1-*.parquet)
date +%T
for i in reference centred constpos delta heat; do
 for D in $A $B; do
  timeout 150 python3 scratch/gpu1.py "[[\"$D\",\"nspde\",{\"kernel_init\":\"$i\"},{\"epochs\":150},[20,60,150],\"$i $(basename $D | cut -c1-36)\"]]" &
 done
done
wait
date +%T
for m in fno wno dlr-net gt deeponet nors ncde; do
  timeout 60 python3 scratch/gpu1.py "[[\"$A\",\"$m\",{},{\"epochs\":20},[20],\"$m\"]]" &
done
wait
date +%T
