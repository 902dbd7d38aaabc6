// Package item defines a memory: its kinds, its dates, its stored form, and when
// two are the same. All functions are pure.
package item

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
)

// Kind is the kind of a memory.
type Kind string

// The kinds.
const (
	Fact       Kind = "fact"       // something that is true
	Preference Kind = "preference" // how the person wants things done
	Open       Kind = "open"       // an open item: something to do
)

// Kinds are all kinds in display order.
var Kinds = []Kind{Preference, Open, Fact}

// Personal is the default scope.
const Personal = "personal"

// MaxText is the most bytes of a text, and MaxFiles the most files.
const (
	MaxText  = 4000
	MaxFiles = 10
)

// Item is one memory.
type Item struct {
	ID        string `json:"id"`
	Scope     string `json:"scope"`
	Kind      Kind   `json:"kind"`
	Text      string `json:"text"`
	ChannelID string `json:"channel_id,omitempty"`
	Due       Due    `json:"due,omitzero"` // of an open item
	By        string `json:"by,omitempty"` // the person who said it, for display
	// Attachments are the files that belong to it; its value keeps them.
	Attachments []contract.Attachment `json:"attachments,omitempty"`
	// Principal is for whom it was stored, and where it was said. An item that is not the
	// person's own belongs to the household.
	Principal contract.Principal `json:"principal,omitzero"`
	Created   time.Time          `json:"created"`
	Updated   time.Time          `json:"updated"`
}

func isID(s string) bool      { return isName(s, 32, "") }
func isScope(s string) bool   { return isName(s, 48, "_-") }
func isChannel(s string) bool { return isName(s, 64, "_") }

// isName reports whether s is a lower-case letter followed by lower-case letters,
// digits and others, at most maxLength bytes. A regular expression would be
// compiled at each start of the program.
func isName(s string, maxLength int, others string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return s != "" && len(s) <= maxLength && strings.IndexByte(letters, s[0]) >= 0 &&
		strings.Trim(s, letters+"0123456789"+others) == ""
}

// Group returns the group that the item belongs to; empty: the household, or a person.
func (i Item) Group() string {
	if i.Principal.Confined {
		return i.Principal.Group
	}
	return ""
}

// Whose returns the group or, of a private item, the person's account that the item
// belongs to; empty: the household.
func (i Item) Whose() string {
	if group := i.Group(); group != "" || !i.Principal.Own {
		return group
	}
	return i.Principal.Person
}

// Check returns an error if the item is invalid.
func (i Item) Check() error {
	switch {
	case !isID(i.ID):
		return words.Errorf("invalid id %q: use lower-case letters and digits, such as m4k2q7", i.ID)
	case i.Created.IsZero() || i.Updated.IsZero():
		return words.Errorf("date is missing")
	}
	if err := CheckScope(i.Scope); err != nil {
		return err
	}
	return i.CheckContent()
}

// CheckContent returns an error if the content of the item is invalid.
func (i Item) CheckContent() error {
	switch {
	case i.Kind != Fact && i.Kind != Preference && i.Kind != Open:
		return words.Errorf("unknown kind %q: use fact, preference or open", i.Kind)
	case i.Text == "":
		return words.Errorf("text is empty")
	case len(i.Text) > MaxText:
		return words.Errorf("text has %d bytes, must be at most %d: shorten or split it", len(i.Text), MaxText)
	case !utf8.ValidString(i.Text) || strings.ContainsRune(i.Text, 0):
		return words.Errorf("text is not valid UTF-8")
	case len(i.Attachments) > MaxFiles:
		return words.Errorf("there are %d files, a memory has at most %d", len(i.Attachments), MaxFiles)
	case i.ChannelID != "" && !isChannel(i.ChannelID):
		return words.Errorf("invalid channel %q: use an id such as telegram_channel", i.ChannelID)
	case !i.Due.IsZero() && i.Kind != Open:
		return words.Errorf("a %s cannot have a due date: only open items can", i.Kind)
	case strings.ContainsAny(i.By, "\n\r") || strings.TrimSpace(i.By) != i.By || len(i.By) > 200:
		return words.Errorf("invalid name %q in by: use one line of at most 200 bytes", i.By)
	}
	return nil
}

// CheckScope returns an error if the name of a scope is invalid.
func CheckScope(name string) error {
	if !isScope(name) {
		return words.Errorf("invalid scope %q: use lower-case letters, digits, - and _, such as %s", name, Personal)
	}
	return nil
}

// Clean returns a text as it is stored: without spaces at both ends of its lines,
// and with at most one empty line in a row.
func Clean(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	kept := lines[:0]
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if l == "" && (len(kept) == 0 || kept[len(kept)-1] == "") {
			continue
		}
		kept = append(kept, l)
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}

// Normalize returns the same text for texts that differ only in case, spaces or
// punctuation at the end.
func Normalize(text string) string {
	text = strings.ReplaceAll(strings.ToLower(text), "ё", "е")
	return strings.TrimRight(strings.Join(strings.Fields(text), " "), ".! ")
}

var letters = base32.NewEncoding("0123456789abcdefghjkmnpqrstuvwyz").WithPadding(base32.NoPadding)

// NewID computes the id of a new text in a scope. The same text has the same id,
// so that remembering it twice concurrently makes one memory. free reports
// whether no other memory has an id.
func NewID(scope, text string, free func(id string) bool) string {
	for salt := 0; ; salt++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", scope, Normalize(text), salt))
		id := "m" + letters.EncodeToString(sum[:])[:6+salt/8]
		if free(id) {
			return id
		}
	}
}

// Decode decodes and checks a stored item.
func Decode(b []byte) (Item, error) {
	var i Item
	if err := json.Unmarshal(b, &i); err != nil {
		return i, fmt.Errorf("decode memory: %w", err)
	}
	if err := i.Check(); err != nil {
		return i, fmt.Errorf("decode memory: %w", err)
	}
	return i, nil
}

// IsDue reports whether the item is open and its due time or day has come.
func (i Item) IsDue(now time.Time) bool { return i.Kind == Open && i.Due.Passed(now) }

// Overdue reports whether the item is open and its due time or day is over.
func (i Item) Overdue(now time.Time) bool { return i.Kind == Open && i.Due.Late(now) }
