import sys, time, json, os, subprocess, importlib
sys.path.insert(0, "src")
import torch, warnings
warnings.simplefilter("ignore")
import spdebench as sb
for m in ("fno", "nspde", "ncde", "nrde", "ncde_fno", "wno", "dlr_net", "nors", "gt", "deeponet", "baselines"):
    try: importlib.import_module("spdebench.models." + m)
    except Exception as e: print("no", m, repr(e)[:200])
from spdebench.models.features import prepare_part
from spdebench.training import Fit
from spdebench.training.identity import identify
from spdebench.training.train import calibrate

def one(data, name, config, options, marks, label):
    task = sb.Task(data)
    t0 = time.time()
    try:
        spec = identify(name, task, config, options)
        model = spec.build().to("cuda")
        train, val = (prepare_part(model, part, place=model.device) for part in (task.train, task.val))
        calibrate(model, train)
        fit = Fit(model, train, val, spec.train_options, graph=True)
        while not fit.finished:
            fit.run_epoch()
        vals = [e["val"] for e in fit.log]
        out = {"label": label, "name": name, "params": model.counts()["real"], "best": min(vals), **{f"b{m}": round(min(vals[:m]), 5) for m in marks if m <= len(vals)},
               "ms/epoch": round(1e3 * sorted(e["seconds"] for e in fit.log)[len(vals)//2], 1), "graph": bool(fit.graph), "epochs": len(vals), "train": round(fit.log[-1]["train"], 5), "secs": round(time.time()-t0, 1)}
    except Exception as e:
        out = {"label": label, "name": name, "error": repr(e)[:300]}
    print(json.dumps(out), flush=True)

if __name__ == "__main__":
    a = json.loads(sys.argv[1])
    for job in a: one(*job)
