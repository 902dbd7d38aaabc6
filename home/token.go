package home

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/home/config"
)

// newToken writes a new token for the owner's clients to a file that only this user
// can read. It replaces the previous token.
func newToken(h *config.Home) (string, error) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails, by its documentation
	token := hex.EncodeToString(raw[:])
	file := filepath.Join(h.Path(), contract.ControlToken)
	next := file + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("write the control token: %w", err)
	}
	f, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("write the control token: %w", err)
	}
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(next, file)
	}
	if err != nil {
		return "", fmt.Errorf("write the control token: %w", err)
	}
	return token, nil
}
