package main

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// cross tries what belongs to other kernels: cross HASH HOME... It notes what it got, what it
// stored with its own kernel, and the token that it has there.
func cross(ctx context.Context, k *sdk.Kernel) error {
	var found struct {
		Got               []string
		Tried             int
		Stored, Token, No string
	}
	stolen, homes := os.Args[2], os.Args[3:]
	for _, home := range homes {
		for _, name := range []string{"", "secrets.env", "config.yaml", "control.token", "switchboard.db", "cluster.key", "dsn",
			"data/cli_channel/terminal.token", "logs/kernel.log", "run", "blobs", "extensions"} {
			path := filepath.Join(home, name)
			_, err := os.ReadFile(path)
			if _, asDir := os.ReadDir(path); err == nil || asDir == nil {
				found.Got = append(found.Got, path)
			}
			found.Tried++
		}
		if os.WriteFile(filepath.Join(home, "planted"), nil, 0o600) == nil {
			found.Got = append(found.Got, "a new file in "+home)
		}
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if text, err := os.ReadFile(filepath.Join("/proc", p.Name(), "environ")); err == nil && len(text) > 0 {
			found.Got = append(found.Got, "the environment of "+p.Name())
		}
		found.Tried++
	}
	if _, err := k.GetBlob(ctx, stolen, io.Discard); err == nil {
		found.Got = append(found.Got, "the file "+stolen)
	} else {
		found.No = err.Error()
	}
	b, err := k.PutBlob(ctx, strings.NewReader("its own"))
	if err != nil {
		return err
	}
	found.Stored = b.Hash
	t := tap{new(string)}
	_, _ = k.Services().Sessions.History(ctx, &kernelv1.HistoryRequest{}, grpc.PerRPCCredentials(t))
	if found.Token = *t.token; found.Token == "" {
		return fs.ErrNotExist
	}
	text, err := json.Marshal(found)
	if err != nil {
		return err
	}
	note(k, string(text))
	<-ctx.Done()
	return nil
}

// tap reads the token that a request shows.
type tap struct{ token *string }

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t tap) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	sent, _ := metadata.FromOutgoingContext(ctx)
	*t.token = strings.Join(sent.Get(contract.TokenHeader), "")
	return nil, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (tap) RequireTransportSecurity() bool { return false }
