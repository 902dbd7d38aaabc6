package router

import (
	"strings"

	"github.com/switchboard-run/switchboard/contract"
)

// unread are the kinds of the attachments whose files the channel did not store. What a
// location or a contact says is in its name.
func (q request) unread() (kinds []string) {
	for _, a := range q.Attachments {
		if a.Blob == "" && a.Kind != contract.KindLocation && a.Kind != contract.KindContact {
			kinds = append(kinds, q.say(strings.ReplaceAll(a.Kind, "_", " ")))
		}
	}
	return kinds
}
