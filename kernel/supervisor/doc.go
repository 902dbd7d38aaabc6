// Package supervisor decides when the processes of extensions start and end, and owns
// their life. A Launcher starts them; extensions that are Go values need none.
//
// Apply sets which extensions run; the supervisor starts, swaps and stops
// processes to match, and keeps them so. Starts happen in parallel, each as soon
// as the extensions that it requires are active. A swap stops the old process
// before the next starts. Several extensions may share one process (a group): they
// start and crash together, and everything else here is per extension. A change of
// the process or of its members swaps the process; a change of one member alone
// shuts that member down and initializes it again, and the others go on.
//
// The supervisor restarts an extension that ends, or does not answer three
// health probes, with growing, jittered delays. Too many failures
// within a window make it failed until Restart or another Spec, which stops only
// the extensions that require it. An error that a restart cannot fix (wrong
// protocol, a refused description) makes it failed at once.
//
// # Promises
//
//   - One generation of an extension runs at a time: Process.Done of the last one is
//     closed, and Observer.Gone has returned, before the next one starts.
//   - Calls of the Observer for one extension come one after another, in the
//     order of events: Active, then Gone for the same generation.
//   - No extension blocks the supervisor: after a deadline without an answer,
//     Process.Kill ends it.
//   - Instance.Context ends with Process.Context, without polling.
//
// # Not promised
//
// What a process may do and use, and what ends with it, is up to the Launcher.
package supervisor
