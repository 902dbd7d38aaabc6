package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// record is what is known of one server.
type record struct {
	// Hash is that of the entry in mcp.json that the Decision is about.
	Hash     string `json:"hash,omitempty"`
	Decision string `json:"decision,omitempty"`
	By       string `json:"by,omitempty"` // as shown to people
	// Asked is the reference of the open question; empty: none.
	Asked string `json:"asked,omitempty"`
	// AskedKey is its dedupe key. Asks counts all questions, Unanswered those since the owner
	// answered last.
	AskedKey   string `json:"asked_key,omitempty"`
	Asks       int    `json:"asks,omitempty"`
	Unanswered int    `json:"unanswered,omitempty"`
	// Listed is the hash of the entry whose process said what follows; empty: none did yet.
	Listed    string     `json:"listed,omitempty"`
	Version   string     `json:"version,omitempty"` // of the protocol
	Title     string     `json:"title,omitempty"`   // name and version of the server's program
	Tools     []toolInfo `json:"tools,omitempty"`
	Prompts   []prompt   `json:"prompts,omitempty"`
	Resources bool       `json:"resources,omitempty"`
}

// toolInfo is a tool as its server describes it.
type toolInfo struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Idempotent  bool            `json:"idempotent,omitempty"`
	// Broken says why it cannot be offered; empty: it can.
	Broken string `json:"broken,omitempty"`
	// Allowed is the Sum of what the owner allowed; Was is that description.
	Allowed string `json:"allowed,omitempty"`
	Was     string `json:"was,omitempty"`
	Refused string `json:"refused,omitempty"` // likewise
}

// sum identifies what a model is told of the tool.
func (t toolInfo) sum() string {
	sum := sha256.Sum256([]byte(t.Name + "\n" + t.Description + "\n" + string(t.Schema)))
	return hex.EncodeToString(sum[:])
}

type prompt struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Arguments   []string `json:"arguments,omitempty"`
	Required    int      `json:"required,omitempty"` // how many of them, from the first
}

// catalogue keeps the records of all servers in a file. It is safe for concurrent use.
type catalogue struct {
	dir string

	mu      sync.Mutex
	records map[string]record
}

const catalogueFile = "catalogue.json"

func openCatalogue(dir string) (*catalogue, error) {
	c := &catalogue{dir: dir, records: map[string]record{}}
	data, err := os.ReadFile(filepath.Join(dir, catalogueFile)) //nolint:gosec // its own directory
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &c.records)
	}
	if err != nil {
		return nil, fmt.Errorf("read what the owner decided about MCP servers: %w; delete %s to be asked again",
			err, filepath.Join(dir, catalogueFile))
	}
	return c, nil
}

func (c *catalogue) get(id string) record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.records[id]
}

// change changes a record, and returns when it is on disk.
func (c *catalogue) change(id string, change func(r *record)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.records[id]
	next := before
	next.Tools = append([]toolInfo(nil), before.Tools...)
	change(&next)
	was, errBefore := json.Marshal(before)
	is, errNext := json.Marshal(next)
	if err := errors.Join(errBefore, errNext); err != nil || string(was) == string(is) {
		return err
	}
	c.records[id] = next
	err := writeFile(filepath.Join(c.dir, catalogueFile), c.records)
	if err != nil {
		c.records[id] = before
	}
	return err
}

// writeFile replaces a file by the JSON of a value, at once and for good.
func writeFile(path string, value any) (err error) {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
