# SPDX-License-Identifier: MIT
"""Batch sizes of a service, and a training loop of its own."""

import asyncio

from common import YourDataset, sample_data
from tare import DataLoadingOptimizer, OptimizedFineTuningService, ProfilingOptimizer


def normalize_text(text):
    return text.lower().strip()


dataset, preprocessing_funcs = YourDataset(), [normalize_text]


# ---- 7. Integration with Fine-tuning Service
async def main():
    # Initialize service
    service = OptimizedFineTuningService()

    # Profile and optimize entire training pipeline
    result = await service.profile_and_optimize_training(
        model_name="gpt2",
        dataset=dataset,
        training_config={
            "epochs": 3,
            "learning_rate": 5e-5
        },
        user_id=123,
        profile_data_loading=True,
        profile_preprocessing=True,
        profile_training=True
    )

    print(f"Profiling results: {result}")
    print(f"Optimization plan: {result['optimization_plan']}")
    print(f"Recommendations: {result['recommendations']}")

    # Optimize specific components
    optimized_dataloader = await service.optimize_dataset_loading(dataset, batch_size=32)

    optimized_pipeline = await service.optimize_preprocessing_pipeline(
        preprocessing_funcs, sample_data
    )

    # Get performance report
    report = await service.get_performance_report()
    print(f"Performance report: {report}")
    print(len(optimized_dataloader), optimized_pipeline(sample_data[:1]))


asyncio.run(main())


# ---- Custom Training Loop
async def optimized_training_loop(model, dataset, config):
    # Setup profiling
    profiler = ProfilingOptimizer(config.profiling_config)
    
    # Optimize data loading
    data_optimizer = DataLoadingOptimizer(config.data_optimization_config)
    optimized_dataloader = data_optimizer.optimize_dataloader(dataset)
    
    # Profile training
    with profiler.profile_function("training_epoch"):
        for epoch in range(config.epochs):
            for batch in optimized_dataloader:
                # Training step
                pass
    
    return profiler.get_training_stats()


class Config:
    profiling_config, data_optimization_config, epochs = None, None, 2


print("training_epoch" in asyncio.run(optimized_training_loop(None, dataset, Config))["blocks"])
