package contract

import "github.com/switchboard-run/switchboard/contract/busv1"

// Row is the quote as a history row holds it; nil of nil.
func (q *Quote) Row() *busv1.Quote {
	if q == nil {
		return nil
	}
	return &busv1.Quote{MessageId: q.MessageID, Sender: q.Sender, Text: q.Text}
}
