package link

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

const token = "canary-4711"

func open(t *testing.T, k *Key, node string) *Link {
	t.Helper()
	l, err := Open(Options{Key: k, Node: node, Listen: "127.0.0.1:0", Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// echoing serves a port that repeats each line after its name.
func echoing(t *testing.T, name string) Port {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := Port{Name: "p", Network: "unix", Address: filepath.Join(dir, "s"), Token: filepath.Join(dir, "token")}
	if err := os.WriteFile(p.Token, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", p.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintf(c, "%s %s\n", name, lines.Text())
				}
			}()
		}
	}()
	return p
}

// standby relays the port from an owner that found tells.
func standby(t *testing.T, l *Link, found *atomic.Pointer[[2]string]) (*Relay, Port) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := Port{Name: "p", Network: "unix", Address: filepath.Join(dir, "s"), Token: filepath.Join(dir, "sub", "token")}
	r, err := l.Relay(Relaying{Cell: "home & more", Ports: []Port{p}, Locate: func(context.Context) (string, string, error) {
		at := found.Load()
		return at[0], at[1], nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, p
}

func at(node, address string) *atomic.Pointer[[2]string] {
	var p atomic.Pointer[[2]string]
	p.Store(&[2]string{node, address})
	return &p
}

// patience is for a loaded machine; nothing waits for it otherwise.
const patience = time.Minute

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for began := time.Now(); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("there was not: " + what)
		}
	}
}

func ask(t *testing.T, p Port, line string) (string, error) {
	t.Helper()
	c, err := net.Dial(p.Network, p.Address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	fmt.Fprintln(c, line)
	return bufio.NewReader(c).ReadString('\n')
}

func TestARelayFollowsTheOwner(t *testing.T) {
	t.Parallel()
	k := NewKey()
	a, b, c := open(t, k, "a"), open(t, k, "b"), open(t, k, "c")
	stop := a.Serve("home & more", []Port{echoing(t, "a")}, nil)
	found := at("a", a.Address())
	r, p := standby(t, c, found)
	owner := func(node string) func() bool {
		return func() bool { got, _ := r.Owner(); return got == node }
	}
	eventually(t, "an owner", owner("a"))
	if got, err := ask(t, p, "hello"); got != "a hello\n" {
		t.Fatalf("%q, %v", got, err)
	}
	if text, err := os.ReadFile(p.Token); string(text) != token+"\n" || err != nil {
		t.Errorf("the token is %q, %v", text, err)
	}
	if info, err := os.Stat(p.Token); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v, %v", info.Mode(), err)
	}
	held, err := net.Dial(p.Network, p.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	fmt.Fprintln(held, "1")
	reader := bufio.NewReader(held)
	if got, err := reader.ReadString('\n'); got != "a 1\n" {
		t.Fatalf("%q, %v", got, err)
	}
	stop()
	if _, err := reader.ReadString('\n'); !errors.Is(err, io.EOF) && err == nil {
		t.Error("a connection goes on without its owner")
	}
	b.Serve("home & more", []Port{echoing(t, "b")}, nil)
	found.Store(&[2]string{"b", b.Address()})
	eventually(t, "another owner", owner("b"))
	if got, err := ask(t, p, "hello"); got != "b hello\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := ask(t, Port{Network: "unix", Address: p.Address}, "x"); err != nil || got != "b x\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// Anyone who can write to PostgreSQL can send a relay anywhere.
func TestAWrongAddressGetsNothing(t *testing.T) {
	t.Parallel()
	k := NewKey()
	c := open(t, k, "c")
	served := func(l *Link) *Link { l.Serve("home & more", []Port{echoing(t, "evil")}, nil); return l }
	another := served(open(t, NewKey(), "a"))
	sibling := served(open(t, k, "b")) // a node of the cluster, but not the one that is meant
	for what, address := range map[string]string{"another key": another.Address(), "another node": sibling.Address()} {
		r, p := standby(t, c, at("a", address))
		eventually(t, "a refusal", func() bool {
			_, why := r.Owner()
			return strings.Contains(why, "another cluster key") || strings.Contains(why, "certificate")
		})
		if got, err := ask(t, p, "hello"); err == nil {
			t.Errorf("%s: answered %q", what, got)
		}
		if _, err := os.Stat(p.Token); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the token was written: %v", what, err)
		}
	}
	// It hears nothing that is secret.
	heard := make(chan string, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		buffer := make([]byte, 4096)
		n, _ := conn.Read(buffer)
		_ = conn.Close()
		select {
		case heard <- string(buffer[:n]):
		default:
		}
	}()
	r, p := standby(t, c, at("a", l.Addr().String()))
	_, _ = ask(t, p, "GET secret")
	if got := <-heard; got == "" || strings.Contains(got, "secret") || strings.Contains(got, "GET") {
		t.Errorf("an attacker's address heard %q", got)
	}
	r.Close()
}

func TestANodeRefusesStrangers(t *testing.T) {
	t.Parallel()
	k := NewKey()
	a := open(t, k, "a")
	port := echoing(t, "a")
	a.Serve("home", []Port{port}, nil)
	get := func(config *tls.Config) (string, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+a.Address()+root+"home/tokens", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		line, err := bufio.NewReader(answer.Body).ReadString('\n')
		return line, err
	}
	own, err := k.certificates("c")
	if err != nil {
		t.Fatal(err)
	}
	own.ServerName = hostOf("a")
	if line, err := get(own); !strings.Contains(line, token) {
		t.Fatalf("a node of the cluster gets %q, %v", line, err)
	}
	foreign, err := NewKey().certificates("c")
	if err != nil {
		t.Fatal(err)
	}
	older := own.Clone()
	older.MinVersion, older.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for what, config := range map[string]*tls.Config{
		"no certificate":      {InsecureSkipVerify: true},                                     //nolint:gosec // an attacker
		"another certificate": {InsecureSkipVerify: true, Certificates: foreign.Certificates}, //nolint:gosec // an attacker
		"an older TLS":        older,
	} {
		if line, err := get(config); err == nil || strings.Contains(line, token) {
			t.Errorf("%s: gets %q, %v", what, line, err)
		}
	}
	plain, err := net.Dial("tcp", a.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	fmt.Fprintf(plain, "GET %shome/tokens HTTP/1.1\r\nHost: a\r\n\r\n", root)
	if text, _ := io.ReadAll(plain); strings.Contains(string(text), token) {
		t.Errorf("without TLS: %q", text)
	}
}

func TestTheKeyStaysSecret(t *testing.T) {
	t.Parallel()
	k := NewKey()
	file := filepath.Join(t.TempDir(), "cluster.key")
	if err := WriteKey(file, k); err != nil {
		t.Fatal(err)
	}
	if err := WriteKey(file, NewKey()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a key is replaced: %v", err)
	}
	got, err := ReadKey(file)
	if err != nil || got.Text() != k.Text() || got.Fingerprint() != k.Fingerprint() {
		t.Errorf("read another key: %v", err)
	}
	secret := strings.TrimPrefix(k.Text(), prefix)
	if shown := fmt.Sprintf("%v %+v %#v %s", k, k, k, k.Fingerprint()); strings.Contains(shown, secret[:8]) {
		t.Errorf("it is shown: %s", shown)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(file); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a file that others can read: %v", err)
	}
	if string(k.MAC("a", "bc", "d")) == string(k.MAC("a", "b", "cd")) {
		t.Error("parts run together")
	}
}
