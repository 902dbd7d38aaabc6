// Package sdk is for authors of extensions. An extension is one struct of optional
// handlers:
//
//	func main() {
//		sdk.Serve(sdk.Extension{ID: "my_channel", Channel: &channel{}})
//	}
//
// The SDK speaks the protocol; the author writes plain Go: a channel sends, a tool
// is called, a subscription handles events, a model completes. A handler returns
// its durable changes as effects. The kernel commits them together with the
// acknowledgement of the event, or with the result of the call, in one transaction.
//
// Promises: deliveries with the same key are handled one at a time and in
// order; everything else is concurrent. A delivery that was not acknowledged
// is handled again, here or after a restart. A panic in a handler is an error of
// that handler. The process ends when the kernel has ended, and drains on SIGTERM
// and on the kernel's Shutdown. Logs go to stderr as JSON; stdout is reserved for
// the protocol.
package sdk
