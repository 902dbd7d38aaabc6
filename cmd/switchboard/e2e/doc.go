// Package e2e tests the program from outside: the real binary in processes of
// its own, with people at real sockets, and fakes on loopback in the place of
// Telegram and of a model's server that speak the real protocols. Kernels and
// extensions are killed with -9 in the middle of their work.
//
// The binary and the extensions of third parties that the tests drop in are
// built once for a run, with the race detector if the tests have it. Every test
// has a home of its own and may run beside the others; when it ends, its kernel
// is killed, and a process that is left of it fails the test.
//
// Nothing here waits for a time: a test waits for what it expects to happen,
// and patience bounds that wait. Only reminders are due at times, a few seconds
// ahead, because that is what they are about.
package e2e
