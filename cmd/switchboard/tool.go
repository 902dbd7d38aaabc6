package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// The wait for an extension that is starting.
const (
	startTimeout = 10 * time.Second
	startPoll    = 100 * time.Millisecond
)

// tool calls a tool and returns its answer, or its error. It waits for an extension that is
// starting.
func tool(ctx context.Context, k *admin.Client, q *adminv1.CallToolRequest) (string, error) {
	for end := time.Now().Add(startTimeout); ; {
		result, err := k.CallTool(ctx, q)
		if err == nil && result.IsError {
			err = errors.New(result.Content)
		} else if err != nil && ctx.Err() == nil && time.Now().Before(end) && isStarting(ctx, k, q.GetName()) {
			select {
			case <-ctx.Done():
			case <-time.After(startPoll):
				continue
			}
		}
		return result.GetContent(), err
	}
}

// isStarting reports whether the extension of a tool is starting.
func isStarting(ctx context.Context, k *admin.Client, name string) bool {
	extension, _, _ := strings.Cut(name, "/")
	all, err := admin.Extensions(ctx, k)
	return err == nil && slices.ContainsFunc(all, func(x *adminv1.Extension) bool {
		return x.Id == extension && (x.State == "starting" || x.State == "inactive" || x.State == "backing_off")
	})
}

// callTool calls a tool and decodes its answer.
func callTool[T any](ctx context.Context, k *admin.Client, name string, fields map[string]any) (T, error) {
	return callToolOf[T](ctx, k, "", name, fields)
}

// callToolOf calls a tool, which sees only what a person set up, and decodes its answer.
func callToolOf[T any](
	ctx context.Context, k *admin.Client, person, name string, fields map[string]any,
) (answer T, err error) {
	arguments, err := json.Marshal(fields)
	if err != nil {
		return answer, err
	}
	content, err := tool(ctx, k, &adminv1.CallToolRequest{Name: name, Arguments: arguments, Person: person})
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal([]byte(content), &answer); err != nil {
		return answer, fmt.Errorf("read the answer of %s: %w", name, err)
	}
	return answer, nil
}

// runTool calls a tool and prints the text of its answer, or all of it as JSON.
func runTool(c *cobra.Command, k *admin.Client, name string, fields map[string]any, asJSON bool) error {
	result, err := callTool[json.RawMessage](c.Context(), k, name, fields)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(c, result)
	}
	var said struct{ Text string }
	if err := json.Unmarshal(result, &said); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	printerOf(c).line("%s", said.Text)
	return nil
}
