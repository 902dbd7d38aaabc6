package config

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/home/filewatch"
)

// Live holds what config.yaml and secrets.env say, each as it was when it was
// last right.
type Live struct {
	home *Home
	env  func(string) (string, bool)

	mu           sync.Mutex
	config       *Config
	secrets      *Secrets
	configErr    error
	secretsErr   error
	state, acted [2]string // of both files: in the last scan, and when acted on
}

// Change says which files are read anew.
type Change struct{ Config, Secrets bool }

// Open reads both files. What cannot be read has its defaults and its error,
// see Errors: whether to start with that is the caller's decision.
func Open(home *Home, env func(string) (string, bool)) *Live {
	l := &Live{home: home, env: env, config: Default(), secrets: NewSecrets(nil, env)}
	l.acted = l.look()
	l.state = l.acted
	l.readConfig()
	l.readSecrets()
	return l
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

// Errors returns what is wrong with the files as they are now.
func (l *Live) Errors() (config, secrets error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.configErr, l.secretsErr
}

// Watch calls onChange, from the calling goroutine, whenever a file was edited
// since Open or the last call, well or badly, until the context ends.
func (l *Live) Watch(ctx context.Context, onChange func(Change)) {
	filewatch.Run(ctx, filewatch.Target{
		// The files and not their directory: the journal is written there.
		Paths: func() []string { return []string{l.home.Config(), l.home.Secrets()} },
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
	now := l.look()
	if now != l.state {
		l.state = now
		return Change{}, true
	}
	change = Change{Config: now[0] != l.acted[0], Secrets: now[1] != l.acted[1]}
	l.acted = now
	if change.Config {
		l.readConfig()
	}
	if change.Secrets {
		l.readSecrets()
	}
	return change, false
}

// look is equal as long as both files are.
func (l *Live) look() (state [2]string) {
	for i, file := range []string{l.home.Config(), l.home.Secrets()} {
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
