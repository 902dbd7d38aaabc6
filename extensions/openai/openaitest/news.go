package openaitest

import "encoding/json"

// News is what a request holds that no earlier one began with: a provider
// caches a request up to the first byte that differs.
type News struct {
	Bytes int
	// Messages is how many of them are new messages, in JSON, without what an
	// agent tells besides their texts.
	Messages int
	// Resent is how many messages of the request before do not stand at their
	// places any more.
	Resent int
}

// NewsOf compares each request with all of those before it.
func NewsOf(requests []Request) []News {
	all := make([]News, len(requests))
	messages := make([][]json.RawMessage, len(requests))
	for i, r := range requests {
		var parts struct {
			Messages []json.RawMessage `json:"messages"`
		}
		_ = json.Unmarshal(r.Raw, &parts) // what is no request has no messages
		messages[i] = parts.Messages
		known, began := 0, 0
		for k, earlier := range requests[:i] {
			known = max(known, common(messages[k], messages[i],
				func(a, b json.RawMessage) bool { return string(a) == string(b) }))
			began = max(began, common(earlier.Raw, r.Raw, func(a, b byte) bool { return a == b }))
		}
		n := News{Bytes: len(r.Raw) - began}
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

// common is how many elements two lists begin with alike.
func common[T any](a, b []T, same func(a, b T) bool) (n int) {
	for n < len(a) && n < len(b) && same(a[n], b[n]) {
		n++
	}
	return n
}
