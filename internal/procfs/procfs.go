// Package procfs reads what the system says about processes.
package procfs
