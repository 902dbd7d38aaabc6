package control

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
)

// NewToken writes a new token to the file, for this user alone. The one before
// it is worth nothing any more.
func NewToken(file string) (string, error) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails, by its documentation
	token := hex.EncodeToString(raw[:])
	next := file + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("writing the control token: %w", err)
	}
	f, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("writing the control token: %w", err)
	}
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(next, file)
	}
	if err != nil {
		return "", fmt.Errorf("writing the control token: %w", err)
	}
	return token, nil
}

func readToken(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the control token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
