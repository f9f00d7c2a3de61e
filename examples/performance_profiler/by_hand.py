# SPDX-License-Identifier: MIT
"""A ProductionProfiler and a diagnose_performance_issues() written by hand, over tare's PerformanceProfiler. (tare has
both, done better: see service.py and system.py.) Needs Python alone.

Left out by the text and added here: what to do about a violation, and requests."""

from tare import PerformanceProfiler

from datetime import datetime, timedelta
import json

class ProductionProfiler:
    def __init__(self):
        self.profiler = PerformanceProfiler()
        self.metrics_log = []

    def profile_request(self, request_id):
        return self.profiler.profile(f"request_{request_id}")

    def log_metrics(self, request_id, user_facing_latency):
        metrics = self.profiler.get_metrics()

        log_entry = {
            "timestamp": datetime.now().isoformat(),
            "request_id": request_id,
            "internal_latency": metrics.timing.wall_time_s,
            "user_facing_latency": user_facing_latency,
            "memory_mb": metrics.memory.peak_ram_mb,
            "cpu_percent": metrics.system.cpu_percent if hasattr(metrics, 'system') else None
        }

        self.metrics_log.append(log_entry)

        # Check SLA compliance
        if user_facing_latency > 2.0:  # 2 second SLA
            self.alert_sla_violation(log_entry)

    def alert_sla_violation(self, log_entry):
        print("violated:", log_entry["request_id"])

    def generate_hourly_report(self):
        # Generate performance report for last hour
        cutoff = datetime.now() - timedelta(hours=1)
        recent_metrics = [m for m in self.metrics_log
                         if datetime.fromisoformat(m["timestamp"]) > cutoff]

        if recent_metrics:
            avg_latency = sum(m["user_facing_latency"] for m in recent_metrics) / len(recent_metrics)
            p95_latency = sorted([m["user_facing_latency"] for m in recent_metrics])[int(0.95 * len(recent_metrics))]

            return {
                "requests_processed": len(recent_metrics),
                "average_latency": avg_latency,
                "p95_latency": p95_latency,
                "sla_violations": sum(1 for m in recent_metrics if m["user_facing_latency"] > 2.0)
            }


def diagnose_performance_issues(profiler_results):
    issues = []

    # Check for memory issues
    if profiler_results.memory.peak_ram_mb > 16000:  # >16GB
        issues.append("High memory usage - consider reducing batch size or model size")

    # Check for CPU bottlenecks
    if profiler_results.system.cpu_percent > 95:
        issues.append("CPU bottleneck - consider data loading optimization or distributed training")

    # Check for GPU underutilization
    if profiler_results.compute.gpu_utilization_percent < 70:
        issues.append("GPU underutilized - increase batch size or improve data loading")

    # Check for I/O bottlenecks
    if profiler_results.system.disk_io_wait_percent > 20:
        issues.append("I/O bottleneck - optimize data loading or use faster storage")

    return issues


prod_profiler = ProductionProfiler()
for request_id, latency in enumerate([0.5, 1.0, 2.5]):
    with prod_profiler.profile_request(request_id):
        sum(range(10_000))
    prod_profiler.log_metrics(request_id, latency)
print(json.dumps(prod_profiler.generate_hourly_report()))

# Usage after profiling
metrics = prod_profiler.profiler.get_metrics()
issues = diagnose_performance_issues(metrics)
for issue in issues:
    print(f"⚠️ {issue}")
