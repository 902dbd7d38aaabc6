package terminal

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// parseConversation returns the conversation for a name or a session key.
func parseConversation(s string) (string, error) {
	key, found := strings.CutPrefix(s, "chan:")
	if !found {
		if len(s) > wire.MaxID {
			return "", fmt.Errorf("conversation name %.20q... is too long: the limit is %d bytes", s, wire.MaxID)
		}
		return s, nil
	}
	parts := strings.Split(key, ":")
	if len(parts) != 2 || parts[1] == "" {
		return "", fmt.Errorf("session %q is not a terminal conversation: want chan:<channel>:<conversation>", s)
	}
	name, err := url.PathUnescape(parts[1])
	if err != nil {
		return "", fmt.Errorf("parse session %q: %w", s, err)
	}
	return name, nil
}
