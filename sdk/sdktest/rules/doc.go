// Package rules is what every extension owes the kernel, as a list of rules that are
// checked over the wire. Check plays the kernel: it starts the extension, calls it, hands
// it deliveries and serves the kernel's services to it, and reports for each rule what was
// expected and what was seen.
//
// `switchboard extensions verify` checks the process of an extension in any language,
// sdktest.Conformance an extension in the process of a Go test: the same rules.
//
// # Promises
//
//   - A rule that fails spoils no other: the rules after it get a new start of the extension.
//   - Each wait ends after Options.Patience, and the failure says what was waited for.
//   - Nothing of it outlives Check: no process, socket or directory.
//
// # Not promised
//
// What the extension does on its platform is not seen. It is called with arguments that
// are made from its tools' schemas: give it no secrets of accounts that matter.
package rules
