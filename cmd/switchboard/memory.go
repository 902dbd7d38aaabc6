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

	"github.com/switchboard-run/switchboard/sdk/admin"
)

// The tools of the memory extension.
const (
	listMemories   = "memory/list_memories"
	remember       = "memory/remember"
	recallMemories = "memory/recall"
	forgetMemories = "memory/forget"
	forgetAll      = "memory/forget_all"
	exportMemories = "memory/export_memories"
	importMemories = "memory/import_memories"
)

// memoryList is the result of list_memories and recall.
type memoryList struct {
	Memories   []remembered `json:"memories"`
	More       int          `json:"more"`
	Unreadable []struct {
		ID    string `json:"id"`
		Error string `json:"error"`
	} `json:"unreadable"`
}

// remembered has the shown fields of a memory; raw is all of it.
type remembered struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`
	Text      string    `json:"text"`
	Scope     string    `json:"scope"`
	ChannelID string    `json:"channel_id"`
	DueLocal  string    `json:"due_local"`
	Overdue   bool      `json:"overdue"`
	By        string    `json:"by"`
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
	raw       json.RawMessage
}

func (r *remembered) UnmarshalJSON(data []byte) error {
	type fields remembered
	r.raw = append(r.raw[:0], data...)
	return json.Unmarshal(data, (*fields)(r))
}

func (r remembered) MarshalJSON() ([]byte, error) { return r.raw, nil } //nolint:unparam // json.Marshaler wants it

func newMemoryCommand() *cobra.Command {
	return group("memory", "Memories: facts, preferences and open items",
		newMemoryList(), newMemoryAdd(), newMemoryEdit(), newMemoryExport(), newMemoryImport(), newMemoryForget())
}

// memoryPage is the number of memories per request.
const memoryPage = 1000

// memoryKinds are the kinds of memories, as the extension names them.
var memoryKinds = []string{"fact", "preference", "open"}

func checkKind(kind string) error {
	if !slices.Contains(memoryKinds, kind) {
		return fmt.Errorf("--kind %s: give one of %s", kind, strings.Join(memoryKinds, ", "))
	}
	return nil
}

// memoryQuery selects memories.
type memoryQuery struct {
	about, kind, scope string
	limit              int // 0: all
}

func newMemoryList() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List memories, or search them", Args: cobra.NoArgs,
		Example: "  switchboard memory list --kind open\n  switchboard memory list --about kettle",
	}
	asJSON := jsonFlag(c)
	var q memoryQuery
	c.Flags().StringVar(&q.about, "about", "", "only memories that match these words, best first")
	c.Flags().StringVar(&q.kind, "kind", "", "only one kind: fact, preference or open")
	c.Flags().StringVar(&q.scope, "scope", "", "only one scope")
	c.Flags().IntVarP(&q.limit, "lines", "n", 50, "how many (0: all)")
	c.RunE = withKernel("list the memories", func(c *cobra.Command, k *admin.Client, _ []string) error {
		switch {
		case q.limit < 0:
			return fmt.Errorf("-n %d: give 0 or more", q.limit)
		case q.kind != "":
			if err := checkKind(q.kind); err != nil {
				return err
			}
		}
		found, err := readMemories(c.Context(), k, q)
		if err != nil {
			return err
		}
		none := "Nothing is remembered. Tell the assistant: “remember that the kettle is in the kitchen”."
		if q.about+q.kind+q.scope != "" {
			none = "No memory matches."
		}
		err = list(c, *asJSON, found.Memories, "ID KIND DUE CHANNEL BY SINCE WHAT | BY CHANNEL SINCE DUE", none,
			func(p *printer, r remembered) []cell {
				since := r.Updated
				if since.IsZero() {
					since = r.Created
				}
				kind := r.Kind
				if r.Scope != "" {
					kind += " (" + r.Scope + ")"
				}
				due := text(dash(r.DueLocal))
				if r.Overdue {
					due.color = yellow
				}
				return []cell{text(r.ID), text(kind), due, text(dash(r.ChannelID)), text(dash(r.By)), text(p.clock(since)),
					text(shorten(r.Text, 120))}
			})
		if err != nil || *asJSON {
			return err
		}
		p := printerOf(c)
		if found.More > 0 {
			p.faint(fmt.Sprintf("and %d more: -n 0 shows all", found.More))
		}
		for _, u := range found.Unreadable {
			p.line("%s", p.paint(red, fmt.Sprintf("%s cannot be read: %s: `switchboard memory forget %s` removes it", u.ID,
				u.Error, u.ID)))
		}
		return nil
	})
	return c
}

// readMemories lists page by page.
func readMemories(ctx context.Context, k *admin.Client, q memoryQuery) (all memoryList, err error) {
	all.Memories = []remembered{}
	name, fields := listMemories, map[string]any{}
	if q.about != "" {
		name, fields["query"] = recallMemories, q.about
	}
	if q.kind != "" {
		fields["kind"] = q.kind
	}
	if q.scope != "" {
		fields["scope"] = q.scope
	}
	for {
		fields["limit"] = memoryPage
		if q.limit > 0 {
			fields["limit"] = min(memoryPage, q.limit-len(all.Memories))
		}
		if name == listMemories {
			fields["offset"] = len(all.Memories)
		}
		page, err := callTool[memoryList](ctx, k, name, fields)
		if err != nil {
			return all, err
		}
		all.Memories = append(all.Memories, page.Memories...)
		all.More, all.Unreadable = page.More, page.Unreadable
		if page.More == 0 || len(page.Memories) == 0 || name == recallMemories ||
			q.limit > 0 && len(all.Memories) >= q.limit {
			return all, nil
		}
	}
}

func newMemoryAdd() *cobra.Command {
	c := &cobra.Command{
		Use: "add TEXT...", Short: "Remember something", Args: cobra.MinimumNArgs(1),
		Example: "  switchboard memory add the router stands in the hall\n" +
			"  switchboard memory add --kind open --due 2026-03-01 water the plants",
	}
	asJSON := jsonFlag(c)
	kind := c.Flags().String("kind", "fact", "fact, preference or open (something to do)")
	due := c.Flags().String("due", "", "with --kind open: 2026-03-01 or 2026-03-01T18:30")
	scope := c.Flags().String("scope", "", "the scope (default: personal)")
	c.RunE = withKernel("remember", func(c *cobra.Command, k *admin.Client, args []string) error {
		if err := checkKind(*kind); err != nil {
			return err
		}
		fields := map[string]any{"text": strings.Join(args, " "), "kind": *kind}
		if *due != "" {
			fields["due"] = *due
		}
		if *scope != "" {
			fields["scope"] = *scope
		}
		return runTool(c, k, remember, fields, *asJSON)
	})
	return c
}

func newMemoryEdit() *cobra.Command {
	c := &cobra.Command{
		Use: "edit ID [TEXT...]", Short: "Change a memory's text, kind or due date", Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: first(memoryIDs),
		Example: "  switchboard memory edit m4k2q7 the router stands in the kitchen\n" +
			"  switchboard memory edit m4k2q7 --due 2026-03-02",
	}
	asJSON := jsonFlag(c)
	kind := c.Flags().String("kind", "", "fact, preference or open (something to do)")
	due := c.Flags().String("due", "", `of an open item: 2026-03-01 or 2026-03-01T18:30; "": none`)
	c.RunE = withKernel("change", byName(memoryIDs, 1, func(c *cobra.Command, k *admin.Client, args []string) error {
		fields := map[string]any{}
		if text := strings.Join(args[1:], " "); text != "" {
			fields["text"] = text
		}
		if c.Flags().Changed("kind") {
			if err := checkKind(*kind); err != nil {
				return err
			}
			fields["kind"] = *kind
		}
		if c.Flags().Changed("due") {
			fields["due"] = *due
		}
		if len(fields) == 0 {
			return errors.New("give a new text, or a flag such as --kind preference")
		}
		fields["id"] = args[0]
		return runTool(c, k, remember, fields, *asJSON)
	}))
	return c
}

func newMemoryForget() *cobra.Command {
	c := &cobra.Command{
		Use: "forget ID...", Short: "Forget memories for good", ValidArgsFunction: suggest(memoryIDs),
		Example: "  switchboard memory forget m4k2q7\n  switchboard memory forget --all --yes",
		Args: func(c *cobra.Command, args []string) error {
			if all, _ := c.Flags().GetBool("all"); all == (len(args) > 0) {
				return errors.New("give ids of `switchboard memory list`, or --all")
			}
			return nil
		},
	}
	asJSON := jsonFlag(c)
	all := c.Flags().Bool("all", false, "forget everything")
	scope := c.Flags().String("scope", "", "with --all: only one scope")
	yes := c.Flags().BoolP("yes", "y", false, "with --all: do not ask")
	c.RunE = withKernel("forget", byName(memoryIDs, -1, func(c *cobra.Command, k *admin.Client, args []string) error {
		name, fields := forgetMemories, map[string]any{"ids": args}
		if *all {
			name, fields = forgetAll, map[string]any{}
			what := "all memories"
			if *scope != "" {
				fields["scope"] = *scope
				what = "all memories of the scope " + *scope
			}
			if ok, err := confirm(c, *yes, "Forget "+what+" for good?",
				"`switchboard memory export` keeps a copy"); err != nil || !ok {
				return err
			}
		}
		return runTool(c, k, name, fields, *asJSON)
	}))
	return c
}

func memoryIDs(ctx context.Context, k *admin.Client) (out []string, err error) {
	found, err := readMemories(ctx, k, memoryQuery{limit: 200})
	for _, r := range found.Memories {
		out = append(out, r.ID+"\t"+shorten(r.Text, 60))
	}
	return out, err
}
