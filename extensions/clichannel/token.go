package clichannel

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// newToken is what terminals have to show: it stands in a file of the data
// directory, which the person can read, and other extensions cannot. It stays
// the same, so that a terminal finds its way back.
func newToken(dir string) (string, error) {
	path := filepath.Join(dir, wire.TokenName)
	data, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(data))) > 0 {
		return strings.TrimSpace(string(data)), os.Chmod(path, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the token of terminals: %w", err)
	}
	token := rand.Text()
	next := path + ".new"
	if err := os.WriteFile(next, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the token of terminals: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return "", fmt.Errorf("write the token of terminals: %w", err)
	}
	return token, nil
}
