package openaitest

import "encoding/json"

// Added is the part of a request that no earlier one began with. A provider caches a
// request up to the first byte that differs.
type Added struct {
	Bytes int
	// Messages is the size of the new messages in JSON, without their preambles.
	Messages int
	// Resent is the number of messages of the previous request that this one does not
	// begin with.
	Resent int
}

// AddedBy compares each request with all earlier ones.
func AddedBy(requests []Request) []Added {
	all := make([]Added, len(requests))
	messages := make([][]json.RawMessage, len(requests))
	for i, r := range requests {
		var parts struct {
			Messages []json.RawMessage `json:"messages"`
		}
		_ = json.Unmarshal(r.Raw, &parts) // invalid JSON has no messages
		messages[i] = parts.Messages
		known, began := 0, 0
		for k, earlier := range requests[:i] {
			known = max(known, common(messages[k], messages[i],
				func(a, b json.RawMessage) bool { return string(a) == string(b) }))
			began = max(began, common(earlier.Raw, r.Raw, func(a, b byte) bool { return a == b }))
		}
		n := Added{Bytes: len(r.Raw) - began}
		for k, m := range messages[i][known:] {
			preamble, _ := json.Marshal(r.Messages[known+k].Content.Preamble) //nolint:errchkjson // a string
			n.Messages += len(m) - (len(preamble) - len(`""`))
		}
		if i > 0 {
			n.Resent = len(messages[i-1]) - common(messages[i-1], messages[i],
				func(a, b json.RawMessage) bool { return string(a) == string(b) })
		}
		all[i] = n
	}
	return all
}

// common returns the length of the common prefix of two lists.
func common[T any](a, b []T, same func(a, b T) bool) (n int) {
	for n < len(a) && n < len(b) && same(a[n], b[n]) {
		n++
	}
	return n
}
