// Package contract is the interface between the kernel and extensions: the
// protobuf services (generated into busv1, extensionv1 and kernelv1), the
// topics with their payloads, the go-plugin handshake, the limits and the
// mapping of errors.
//
// Within protocol version 1 changes are additive only: fields, services and
// topics are added, never renumbered, renamed or given another meaning.
//
// The package imports nothing else of this module but its subpackages.
package contract
