"""Say what was fused, and why not: `bridge.explain`, its text and HTML page, and `expect_fused` for tests."""
