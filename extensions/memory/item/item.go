// Package item is what one memory is: its kinds, its dates, how it is stored
// and when two are the same. Everything here is a pure function.
package item

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind is what a memory is for.
type Kind string

// The kinds.
const (
	Fact       Kind = "fact"       // true of someone or something
	Preference Kind = "preference" // how things are to be done
	Open       Kind = "open"       // something that remains to be done
)

// Kinds are all of them, in the order in which they are shown.
var Kinds = []Kind{Preference, Open, Fact}

// Personal is the scope of what belongs to no other.
const Personal = "personal"

// MaxText is the most bytes of a text.
const MaxText = 4000

// Item is one memory.
type Item struct {
	ID        string    `json:"id"`
	Scope     string    `json:"scope"`
	Kind      Kind      `json:"kind"`
	Text      string    `json:"text"`
	ChannelID string    `json:"channel_id,omitempty"`
	Due       Due       `json:"due,omitzero"` // of an open item
	By        string    `json:"by,omitempty"` // who said so, as shown to people
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
}

func isID(s string) bool      { return isName(s, 32, "") }
func isScope(s string) bool   { return isName(s, 48, "_-") }
func isChannel(s string) bool { return isName(s, 64, "_") }

// isName reports whether s is a lower-case letter and, up to a length, lower-case
// letters, digits and some others. As patterns the three would be compiled at each
// start of the program.
func isName(s string, most int, others string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return s != "" && len(s) <= most && strings.IndexByte(letters, s[0]) >= 0 &&
		strings.Trim(s, letters+"0123456789"+others) == ""
}

// Check says what is wrong with an item.
func (i Item) Check() error {
	switch {
	case !isID(i.ID):
		return fmt.Errorf("%q is no id: an id has lower-case letters and digits, such as m4k2q7", i.ID)
	case !isScope(i.Scope):
		return fmt.Errorf("%q is no scope: a scope has lower-case letters, digits, - and _, such as %s", i.Scope, Personal)
	case i.Created.IsZero() || i.Updated.IsZero():
		return errors.New("it has no date")
	}
	return i.CheckContent()
}

// CheckContent says what is wrong with what an item says.
func (i Item) CheckContent() error {
	switch {
	case i.Kind != Fact && i.Kind != Preference && i.Kind != Open:
		return fmt.Errorf("%q is no kind: there are fact, preference and open", i.Kind)
	case i.Text == "":
		return errors.New("there is nothing to remember: the text is empty")
	case len(i.Text) > MaxText:
		return fmt.Errorf("the text has %d bytes, a memory at most %d: shorten it, or make several of it", len(i.Text), MaxText)
	case !utf8.ValidString(i.Text) || strings.ContainsRune(i.Text, 0):
		return errors.New("the text is not valid UTF-8")
	case i.ChannelID != "" && !isChannel(i.ChannelID):
		return fmt.Errorf("%q is no id of a channel: those are such as telegram_channel", i.ChannelID)
	case !i.Due.IsZero() && i.Kind != Open:
		return fmt.Errorf("a due date belongs to an open item, and this is a %s", i.Kind)
	case strings.ContainsAny(i.By, "\n\r") || strings.TrimSpace(i.By) != i.By || len(i.By) > 200:
		return fmt.Errorf("%q is no name of who said so: it is one line", i.By)
	}
	return nil
}

// CheckScope says what is wrong with the name of a scope.
func CheckScope(name string) error {
	if !isScope(name) {
		return fmt.Errorf("%q is no scope: a scope has lower-case letters, digits, - and _, such as %s", name, Personal)
	}
	return nil
}

// Clean is a text as it is kept: without space around it and at the ends of
// lines, and without more than one empty line in a row.
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

// Likeness is equal for texts that say the same in the same words.
func Likeness(text string) string {
	text = strings.ReplaceAll(strings.ToLower(text), "ё", "е")
	return strings.TrimRight(strings.Join(strings.Fields(text), " "), ".! ")
}

var letters = base32.NewEncoding("0123456789abcdefghjkmnpqrstuvwyz").WithPadding(base32.NoPadding)

// NewID is the id of a new text of a scope. It follows from them, so that the
// same text that is remembered twice at once is one memory; free tells whether
// an id is not that of another.
func NewID(scope, text string, free func(id string) bool) string {
	for salt := 0; ; salt++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", scope, Likeness(text), salt))
		id := "m" + letters.EncodeToString(sum[:])[:6+salt/8]
		if free(id) {
			return id
		}
	}
}

// Decode reads a stored item.
func Decode(b []byte) (Item, error) {
	var i Item
	if err := json.Unmarshal(b, &i); err != nil {
		return i, fmt.Errorf("it is no memory: %w", err)
	}
	return i, i.Check()
}

// IsDue says whether it is an open item whose time has come.
func (i Item) IsDue(now time.Time) bool { return i.Kind == Open && i.Due.Passed(now) }

// Overdue says whether it is an open item whose time is past.
func (i Item) Overdue(now time.Time) bool { return i.Kind == Open && i.Due.Late(now) }
