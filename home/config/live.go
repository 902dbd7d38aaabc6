package config

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/internal/filewatch"
)

// Live holds the last valid content of config.yaml and of secrets.env, and the bytes of
// mcp.json. Its methods are safe for concurrent use.
type Live struct {
	home *Home
	env  func(string) (string, bool)

	mu            sync.Mutex
	config        *Config
	secrets       *Secrets
	configErr     error
	secretsErr    error
	servers       []byte // nil: there is no such file
	serversErr    error
	seen, applied [3]string // state of the files: at the last scan, and when last read
}

// Change says which files were read again.
type Change struct{ Config, Secrets, Servers bool }

// Open reads both files. An invalid file has its defaults, and its error is in
// Errors; the caller decides whether to start with it.
func Open(home *Home, env func(string) (string, bool)) *Live {
	l := &Live{home: home, env: env, config: Default(), secrets: NewSecrets(nil, env)}
	l.Reread()
	return l
}

// Reread reads all files again now. It must not be called while Watch runs.
func (l *Live) Reread() {
	l.applied = l.state()
	l.seen = l.applied
	l.readConfig()
	l.readSecrets()
	l.readServers()
}

// Config returns the configuration in force.
func (l *Live) Config() *Config {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.config
}

// Secrets returns the secrets in force.
func (l *Live) Secrets() *Secrets {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.secrets
}

// Servers returns the content of mcp.json as it is now; nil: there is no such file.
func (l *Live) Servers() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.servers, l.serversErr
}

// Errors returns the errors of config.yaml and secrets.env as they are now.
func (l *Live) Errors() (config, secrets error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.configErr, l.secretsErr
}

// Watch calls onChange, on the calling goroutine, after each edit of a file since
// Open, valid or not, until the context ends.
func (l *Live) Watch(ctx context.Context, onChange func(Change)) {
	filewatch.Run(ctx, filewatch.Target{
		// Not their directory: the journal is written there.
		Paths: func() []string { return l.files() },
		Scan: func() bool {
			change, settling := l.scan()
			if change != (Change{}) {
				onChange(change)
			}
			return settling
		},
		Poll: 500 * time.Millisecond,
	})
}

func (l *Live) scan() (change Change, settling bool) {
	now := l.state()
	if now != l.seen {
		l.seen = now
		return Change{}, true
	}
	change = Change{Config: now[0] != l.applied[0], Secrets: now[1] != l.applied[1], Servers: now[2] != l.applied[2]}
	l.applied = now
	if change.Config {
		l.readConfig()
	}
	if change.Secrets {
		l.readSecrets()
	}
	if change.Servers {
		l.readServers()
	}
	return change, false
}

func (l *Live) files() []string {
	return []string{l.home.Config(), l.home.Secrets(), l.home.Servers()}
}

// state returns a value that changes when a file does.
func (l *Live) state() (state [3]string) {
	for i, file := range l.files() {
		info, err := os.Stat(file)
		if err != nil {
			state[i] = err.Error()
			continue
		}
		data, err := filewatch.Read(file)
		state[i] = fmt.Sprintf("%o %x %v", info.Mode(), sha256.Sum256(data), err)
	}
	return state
}

func (l *Live) readConfig() {
	c, err := Load(l.home.Config())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.configErr = err; err == nil {
		l.config = c
	}
}

func (l *Live) readSecrets() {
	values, err := LoadSecrets(l.home.Secrets())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.secretsErr = err; err == nil {
		l.secrets = NewSecrets(values, l.env)
	}
}

func (l *Live) readServers() {
	data, err := filewatch.Read(l.home.Servers())
	if errors.Is(err, fs.ErrNotExist) {
		data, err = nil, nil
	} else if err != nil {
		err = fmt.Errorf("read mcp.json: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers, l.serversErr = data, err
}
