package link

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/switchboard-run/switchboard/internal/filewatch"
)

// Key is the secret that the nodes of one cluster share. Printing it shows nothing; Text
// does.
type Key struct{ secret [32]byte }

// prefix begins a key's text, so that people and scanners recognize it.
const prefix = "switchboard-cluster-"

// NewKey makes a random key.
func NewKey() (k *Key) {
	k = &Key{}
	_, _ = rand.Read(k.secret[:])
	return k
}

// ParseKey reads the text of a key.
func ParseKey(text string) (*Key, error) {
	k := &Key{}
	raw, err := hex.DecodeString(strings.TrimPrefix(strings.TrimSpace(text), prefix))
	if err != nil || len(raw) != len(k.secret) {
		return nil, errors.New("this is not the key of a cluster: copy the whole line that " +
			"`switchboard cluster key show` prints on another node")
	}
	copy(k.secret[:], raw)
	return k, nil
}

// ReadKey reads a key from a file, which only this user may be able to read. Without one
// the error is of class fs.ErrNotExist.
func ReadKey(file string) (*Key, error) {
	info, err := os.Stat(file)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = fmt.Errorf("%w: other users can read it: chmod 600 %s", fs.ErrPermission, file)
	}
	var text []byte
	if err == nil {
		text, err = filewatch.Read(file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of the cluster: %w", err)
	}
	k, err := ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return k, nil
}

// WriteKey writes a key to a new file. It replaces none.
func WriteKey(file string, k *Key) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the key of the cluster: %w", err)
	}
	_, err = f.WriteString(k.Text() + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write the key of the cluster: %w", errors.Join(err, os.Remove(file)))
	}
	return nil
}

// Text is the key as people copy it.
func (k *Key) Text() string { return prefix + hex.EncodeToString(k.secret[:]) }

// String hides the key.
func (k *Key) String() string { return "a key of a cluster" }

// GoString hides the key.
func (k *Key) GoString() string { return k.String() }

// Fingerprint tells keys apart and may be shown to anyone.
func (k *Key) Fingerprint() string {
	sum := sha256.Sum256(k.authority().Public().(ed25519.PublicKey))
	return hex.EncodeToString(sum[:8])
}

// MAC authenticates parts for one purpose: only who has the key can make it.
func (k *Key) MAC(purpose string, parts ...string) []byte {
	h := hmac.New(sha256.New, k.derive("mac "+purpose))
	for _, p := range parts {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		_, _ = h.Write([]byte(p))
	}
	return h.Sum(nil)
}

// authority signs the certificates of nodes.
func (k *Key) authority() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(k.derive("certificate authority"))
}

func (k *Key) derive(purpose string) []byte {
	out, err := hkdf.Key(sha256.New, k.secret[:], nil, "switchboard cluster 1: "+purpose, 32)
	if err != nil {
		panic("link: derive a key: " + err.Error()) // never, for these sizes
	}
	return out
}
