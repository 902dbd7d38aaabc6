// Package kerneltest is the kernel without processes, for tests: a store on
// disk, the bus, sessions, the router and the tools, with extensions that the
// test itself plays.
//
//	kerneltest.Run(t, func(w *kerneltest.World) {
//		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
//		telegram.Admits("anna")
//		telegram.Says("anna", "hello")
//		orchestrator.Hears("hello").Answers("hello yourself")
//		telegram.Shows("hello yourself")
//	})
//
// Everything runs in a bubble of testing/synctest: time is the test's, and
// before something is looked at, all that can happen has happened. So a test
// can also say that something does not happen. Nothing here may be used from
// several goroutines at once.
package kerneltest
