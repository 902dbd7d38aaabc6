package bus

// Lazily applies an update of the kernel's own with the next commit, before any
// that is submitted later, and without waiting for it: for what is counted, not
// for what is acted on. A crash within journal.LazyDelay loses it, together with
// what it would have counted. done must not block.
func (b *Bus) Lazily(apply func(*Tx) error, done func(error)) {
	b.submit(Kernel, "", true, apply, done)
}
