// Package sdktest runs an extension against a fake kernel, in the test's own
// process and over real gRPC, so that a test sees what production sees:
//
//	k := sdktest.Start(t, myExtension(), sdktest.Options{})
//	k.Deliver("reminder.due", payload).MustAck(t)
//	got := k.Await("system.user.notify")
//
// The fake speaks all of the kernel's services. It promises: commits are atomic
// and applied in order, versions and dedupe keys are checked, a commit id is
// applied once, a lane token is refused once its delivery is over, a delivery
// is only sent when the extension has given credit for it, and what is not JSON
// or not a topic is refused. It does not promise what tests of the kernel are
// for: grants, routing, retries, ordering by key. The state outlives the
// extension, so that Restart shows what a crash leaves.
//
// Waiting methods wait for a condition and fail the test after Patience.
//
// Conformance is the suite that every extension has to pass.
package sdktest
