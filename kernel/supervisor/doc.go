// Package supervisor runs extensions as processes and owns their life.
//
// Apply sets which extensions run; the supervisor starts, swaps and stops
// processes to match, and keeps them so. Starts happen in parallel, each as soon
// as the extensions that it requires are active. A swap stops the old process
// before the next starts. Several extensions may share one process (a group): they
// start and crash together, and everything else here is per extension. A change of
// the process or of its members swaps the process; a change of one member alone
// shuts that member down and initializes it again, and the others go on.
//
// The supervisor restarts an extension that ends, does not answer three health
// probes, or outgrows its memory, with growing, jittered delays. Too many failures
// within a window make it failed until Restart or another Spec, which stops only
// the extensions that require it. An error that a restart cannot fix (wrong
// protocol, a refused description) makes it failed at once.
//
// # Promises
//
//   - One generation of an extension runs at a time: its process and every
//     process of its process group are dead, and Observer.Gone has returned,
//     before the next one starts.
//   - Calls of the Observer for one extension come one after another, in the
//     order of events: Active, then Gone for the same generation.
//   - No extension blocks the supervisor: after a deadline without an answer,
//     SIGKILL ends its process group.
//   - Instance.Context ends when the process has exited, without polling.
//   - A process gets the environment of its Spec and nothing else, and no stdin.
//     On Linux it dies with the kernel, however that ends, and its sandbox applies
//     before any code of the extension runs.
//   - An extension that exceeds a limit (memory, processes, data on disk) is killed
//     with all its descendants, and the reason is reported.
//   - Its output is read at a bounded rate; beyond it, its writes block.
//   - With Options.Processes, on Linux, no descendant of an extension outlives it, in
//     any session or process group.
//
// # Not promised
//
// Limits are checked at intervals: a fast process exceeds them for a moment.
// Deleted files that are still open are charged to no directory. Without Processes, a
// grandchild that leaves its process group (setsid) escapes the kill; if the kernel
// was killed with -9, it runs until the next kernel finds it by its environment. It
// holds no resource of the kernel. Where the system has no parent-death signal
// (macOS), a process outlives a kernel that was killed with -9 until it notices the
// lost connection, as the SDK does at once; the next kernel on the same runtime
// directory kills the processes of the earlier one.
package supervisor
