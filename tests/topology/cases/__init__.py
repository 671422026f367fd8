"""The topologies of java/Descriptions.java, built with Headrace: each module has `CASES`, a build function by name."""
