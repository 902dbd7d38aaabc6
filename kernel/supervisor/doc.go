// Package supervisor runs extensions as processes and owns their life.
//
// Apply says which extensions shall run; the supervisor starts, swaps and stops
// processes until that is so, and keeps it so. Starts happen in parallel, each
// as soon as the extensions it requires are active. A swap stops the old
// process before the next starts. Several extensions may share one process (a
// group): they start and crash together, and everything else here is per
// extension. What changes how the process is started, or who shares it, swaps
// it; what concerns one of them alone shuts that one down and initialises it
// again, and the others go on.
//
// An extension that ends, does not answer three health probes, or outgrows its
// memory is started again with growing, jittered delays; too many failures
// within a window make it failed, which stops those that require it and nobody
// else, until Restart or another Spec. What cannot get better by itself (wrong
// protocol, a refused description) is failed at once.
//
// # Promises
//
//   - One generation of an extension lives at a time: its process and every
//     process of its process group are dead, and the Observer has been told
//     (Gone has returned), before the next one starts.
//   - Calls of the Observer for one extension come one after another, in the
//     order of what happened: Active, then Gone for the same generation.
//   - Nothing an extension does blocks the supervisor: whatever it does not
//     answer is ended by SIGKILL to its process group after a deadline.
//   - Instance.Context ends when the process has exited, without polling.
//   - A process gets the environment of its Spec and nothing else, and no stdin.
//     On Linux it dies with the kernel, however that ends, and its sandbox is in
//     force before any code of the extension runs.
//   - An extension that passes one of its limits (memory, processes, data on
//     disk) is killed with all that it has started, and the reason is told.
//   - What it prints is read at a bounded pace; if it prints more, it waits.
//   - With Options.Adopt, on Linux, nothing that an extension has started outlives
//     it, in whatever session or process group it is.
//
// # Not promised
//
// Limits are looked at from time to time: what is faster than that passes them
// for a moment. Files that are open and have no name any more count for no
// directory. Without Adopt, a grandchild that leaves its process group (setsid)
// escapes the kill, and so does one of a kernel that was killed with -9 until the
// next kernel ends it by its environment, if it has kept that; it can hold
// nothing of the kernel's. Where the system has no parent-death signal
// (macOS), a process outlives a kernel that was killed with -9 until it notices
// that its connection is gone, as the SDK does at once; the next kernel on the
// same runtime directory ends what is still there.
package supervisor
