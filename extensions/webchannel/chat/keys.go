package chat

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
)

// Keys of the store. Names are escaped, so that none contains a slash:
//
//	c/<user>/<conversation>                     head
//	m/<user>/<conversation>/<number>            line
//	i/<user>/<conversation>/<u or a>:<id>       number of the line of the user, or the assistant
//	f/<user>/<hash>/<conversation>/<number>     a line's file
//	u/<user>/<hash>                             a file that no line names yet
func headKey(user, conversation string) string {
	return "c/" + url.PathEscape(user) + "/" + url.PathEscape(conversation)
}

func lineKey(user, conversation string, seq int64) string {
	return fmt.Sprintf("%s%012d", linePrefix(user, conversation), seq)
}

func linePrefix(user, conversation string) string {
	return "m/" + url.PathEscape(user) + "/" + url.PathEscape(conversation) + "/"
}

func idKey(user, conversation string, mine bool, id string) string {
	author := "a:"
	if mine {
		author = "u:"
	}
	return "i/" + url.PathEscape(user) + "/" + url.PathEscape(conversation) + "/" + author + id
}

func filePrefix(user, hash string) string { return "f/" + url.PathEscape(user) + "/" + hash + "/" }

func fileKey(user, hash, conversation string, seq int64) string {
	return fmt.Sprintf("%s%s/%012d", filePrefix(user, hash), url.PathEscape(conversation), seq)
}

func uploadPrefix(user string) string { return "u/" + url.PathEscape(user) + "/" }

func unescape(name string) string {
	plain, err := url.PathUnescape(name)
	if err != nil {
		return name
	}
	return plain
}

const (
	maxName = 200       // bytes of the name of a conversation, and of an id
	maxText = 256 << 10 // bytes of what a person says at once
	// MaxFiles is the most files of one message.
	MaxFiles = 20
)

func checkName(name string) error {
	if !plain(name) {
		return failf(contract.ErrInvalid, "the name of a conversation has at most %d bytes of plain text", maxName)
	}
	return nil
}

func plain(name string) bool {
	return len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// failure is an error for people that wraps a sentinel of package contract.
type failure struct {
	kind error
	text string
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.kind }

func failf(kind error, format string, args ...any) error {
	return &failure{kind, words.Sprintf(format, args...)}
}
