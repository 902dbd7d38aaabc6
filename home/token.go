package home

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/home/config"
)

// newToken writes a new token for the owner's clients to a file that only this user
// can read. It replaces the previous token. On a full disk the previous one stays.
func newToken(h *config.Home) (string, error) {
	token := randomToken()
	file := filepath.Join(h.Path(), contract.ControlToken)
	err := replaceToken(file, token)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		if old := oldToken(file); len(old) == len(token) {
			return old, nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("write the control token: %w", err)
	}
	return token, nil
}

func randomToken() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails, by its documentation
	return hex.EncodeToString(raw[:])
}

func replaceToken(file, token string) error {
	next := file + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return os.Rename(next, file)
}

// oldToken returns the token in a file that only this user can read; empty: there is
// none.
func oldToken(file string) string {
	info, err := os.Lstat(file)
	if err != nil || info.Mode() != 0o600 { // a regular file, and the user's alone
		return ""
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(raw), "\n")
}
