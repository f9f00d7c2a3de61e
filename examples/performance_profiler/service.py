# SPDX-License-Identifier: MIT
"""PerformanceProfiler: request latencies of a service. Needs Python alone. The profiler is tare's; one written by hand is in by_hand.py.

Left out by the text and added here: an application that calls its routes, a model, a request."""

import itertools
import time
import types

from tare import ProductionProfiler

routes = {}
app = types.SimpleNamespace(route=lambda path: lambda view: routes.setdefault(path, view))
model = types.SimpleNamespace(predict=lambda data: [2 * x for x in data])
request = types.SimpleNamespace(json=[1, 2, 3])
generate_request_id = itertools.count().__next__

# Usage in production
prod_profiler = ProductionProfiler()

@app.route("/predict")
def predict():
    request_id = generate_request_id()

    start_time = time.time()
    with prod_profiler.profile_request(request_id):
        prediction = model.predict(request.json)
    end_time = time.time()

    prod_profiler.log_metrics(request_id, end_time - start_time)
    return {"prediction": prediction}


for _ in range(100):
    routes["/predict"]()
print(prod_profiler.generate_hourly_report())
