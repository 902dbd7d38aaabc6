// Package sdktest runs an extension on a real kernel, in the test's own process and
// over the real protocol, so that the kernel accepts and refuses what it does in
// production:
//
//	k := sdktest.Start(t, myExtension(), sdktest.Options{Manifest: "manifest.yaml"})
//	k.Deliver("reminder.due", payload).MustAck(t)
//	got := k.Await("system.user.notify")
//
// The kernel has the grants and the configuration of the manifest, and a store of
// its own that outlives the extension, so that Lose and Restart show what a crash
// leaves. Whatever else takes part is an extension too, which the test plays: an
// agent that calls the tools (Call), channels (Options.Channels, Sent), a person
// on one of them (Command, Hear), other extensions (From, Publish, ScriptTool) and
// a model (ScriptModel).
//
// Between the kernel and the extension, this package only looks on, with two
// exceptions: FailCommits has the store refuse what the extension commits, and a
// CallOption changes the context of a tool call that the extension is told.
//
// Waiting methods wait for a condition and fail the test after Patience.
//
// Conformance is the suite that every extension has to pass.
package sdktest
