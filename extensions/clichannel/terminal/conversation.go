package terminal

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// conversationOf is the conversation that a user names: by its name, or by the
// key of its session as listings show it.
func conversationOf(s string) (string, error) {
	key, found := strings.CutPrefix(s, "chan:")
	if !found {
		if len(s) > wire.MaxID {
			return "", fmt.Errorf("name of conversation %.20q... is too long: at most %d bytes", s, wire.MaxID)
		}
		return s, nil
	}
	parts := strings.Split(key, ":")
	if len(parts) != 2 || parts[1] == "" {
		return "", fmt.Errorf("session %q is no conversation of a terminal: want chan:<channel>:<conversation>", s)
	}
	name, err := url.PathUnescape(parts[1])
	if err != nil {
		return "", fmt.Errorf("session %q: %w", s, err)
	}
	return name, nil
}
