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

// loadToken returns the token that terminals must send. It is stored in the data
// directory, where the user can read it and other extensions cannot, and never
// changes, so that terminals can reconnect.
func loadToken(dir string) (string, error) {
	path := filepath.Join(dir, wire.TokenName)
	data, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(data))) > 0 {
		return strings.TrimSpace(string(data)), os.Chmod(path, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read terminal token: %w", err)
	}
	token := rand.Text()
	next := path + ".new"
	err = os.WriteFile(next, []byte(token+"\n"), 0o600)
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return "", fmt.Errorf("write terminal token: %w", err)
	}
	return token, nil
}
