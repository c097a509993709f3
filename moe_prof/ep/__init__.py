"""The fused expert-parallel decode operator: call, plan, check and measure it."""
