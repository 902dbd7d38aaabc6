package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// connect dials the kernel on the home that the environment names.
func connect(ctx context.Context) (*admin.Client, error) {
	home, err := findHome()
	if err != nil {
		return nil, err
	}
	return dial(ctx, home)
}

func dial(ctx context.Context, home *config.Home) (*admin.Client, error) {
	k, err := admin.Dial(ctx, filepath.Join(home.RuntimeDir(), contract.ControlSocket),
		filepath.Join(home.Path(), contract.ControlToken))
	switch {
	case errors.Is(err, admin.ErrNotRunning) && !home.Exists():
		return nil, fmt.Errorf("%w: %s doesn't exist; start one with `switchboard run` (or `switchboard`, which also opens "+
			"a chat), or set %s to another home",
			err, home.Path(), config.HomeEnv)
	case errors.Is(err, admin.ErrNotRunning):
		return nil, fmt.Errorf("%w on %s; start one with `switchboard run` (or `switchboard`, which also opens a chat)", err,
			home.Path())
	}
	return k, err
}

// withKernel makes the RunE of a command that needs a running kernel. An error begins with
// action and the first argument, unless that is a text.
func withKernel(
	action string, f func(c *cobra.Command, k *admin.Client, args []string) error,
) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		k, err := connect(c.Context())
		if err == nil {
			defer k.Close()
			err = f(c, k, args)
		}
		switch {
		case err == nil || errors.Is(err, errReported):
			return err
		case c.Context().Err() != nil:
			return errReported // interrupted by the user
		}
		if len(args) > 0 && !strings.Contains(c.Use, " TEXT") {
			action += " " + args[0]
		}
		return fmt.Errorf("%s: %w", action, err)
	}
}

// hinted adds the command that lists the existing ones to a not-found error.
func hinted(err error, command string) error {
	if errors.Is(err, contract.ErrNotFound) {
		return fmt.Errorf("%w; `%s` lists them", err, command)
	}
	return err
}

// suggestTime bounds shell completion.
const suggestTime = time.Second

// ids are suggestions, "id\tdescription".
type ids func(ctx context.Context, k *admin.Client) ([]string, error)

func suggest(f ids) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), suggestTime)
		defer cancel()
		k, err := connect(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer k.Close()
		all, err := f(ctx, k)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var matching []string
		for _, s := range all {
			if strings.HasPrefix(s, prefix) {
				matching = append(matching, s)
			}
		}
		return matching, cobra.ShellCompDirectiveNoFileComp
	}
}

// first completes the first argument only.
func first(f ids) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return suggest(f)(c, args, prefix)
	}
}

// byName lets the first n arguments (all, if n is negative) be a part of the description
// that f gives, if it is that of one only.
func byName(
	f ids, n int, run func(c *cobra.Command, k *admin.Client, args []string) error,
) func(*cobra.Command, *admin.Client, []string) error {
	return func(c *cobra.Command, k *admin.Client, args []string) error {
		args = slices.Clone(args)
		all, err := f(c.Context(), k)
		if err != nil {
			return err
		}
		for i := range args {
			if i == n {
				break
			}
			if args[i], err = idOf(args[i], all); err != nil {
				return err
			}
		}
		return run(c, k, args)
	}
}

// idOf returns the id that a person means: the name itself if it is an id, or if no
// description has it.
func idOf(name string, all []string) (string, error) {
	var found []string
	for _, one := range all {
		id, description, _ := strings.Cut(one, "\t")
		if id == name {
			return id, nil
		}
		if strings.Contains(strings.ToLower(description), strings.ToLower(name)) {
			found = append(found, fmt.Sprintf("%s (%s)", id, shorten(description, 40)))
		}
	}
	switch len(found) {
	case 0:
		return name, nil
	case 1:
		id, _, _ := strings.Cut(found[0], " (")
		return id, nil
	}
	if more := len(found) - 5; more > 0 {
		found = append(found[:5], fmt.Sprintf("%d more", more))
	}
	return "", fmt.Errorf("%q could be %s: give the id", name, strings.Join(found, ", "))
}

func completeFlag(c *cobra.Command, flag string, f ids) {
	if err := c.RegisterFlagCompletionFunc(flag, suggest(f)); err != nil {
		panic(err) // there is no such flag
	}
}

func channelIDs(ctx context.Context, k *admin.Client) (out []string, err error) {
	dir, err := k.Directory(ctx, &adminv1.DirectoryRequest{})
	for _, x := range admin.Channels(dir) {
		out = append(out, x.ID+"\t"+x.Name+", "+x.Status)
	}
	return out, err
}

func agentIDs(ctx context.Context, k *admin.Client) (out []string, err error) {
	dir, err := k.Directory(ctx, &adminv1.DirectoryRequest{})
	for _, x := range dir.GetAgents() {
		out = append(out, x.Id+"\t"+x.Name)
	}
	return out, err
}

func extensionIDs(ctx context.Context, k *admin.Client) (out []string, err error) {
	all, err := admin.Extensions(ctx, k)
	for _, x := range all {
		out = append(out, x.Id+"\t"+x.Name+", "+x.State)
	}
	return out, err
}

func sessionIDs(ctx context.Context, k *admin.Client) (out []string, err error) {
	all, err := admin.Sessions(ctx, k, &adminv1.SessionsRequest{})
	for _, x := range all {
		out = append(out, x.Id+"\t"+x.Agent+", "+x.Name)
	}
	return out, err
}

func deadIDs(ctx context.Context, k *admin.Client) (out []string, err error) {
	all, err := admin.DeadLetters(ctx, k, 50)
	for _, x := range all {
		out = append(out, x.Event.Id+"\t"+x.Event.Topic)
	}
	return slices.Compact(out), err
}

func eventIDs(ctx context.Context, k *admin.Client) (out []string, err error) {
	all, err := admin.Events(ctx, k, &adminv1.EventsRequest{Limit: 30})
	for _, x := range all {
		out = append(out, x.Id+"\t"+x.Topic)
	}
	return out, err
}

func scheduleIDs(ctx context.Context, k *admin.Client) (out []string, err error) {
	found, err := readSchedules(ctx, k, false)
	for _, x := range found.Schedules {
		out = append(out, x.ID+"\t"+x.Message)
	}
	return out, err
}

func pairingCodes(ctx context.Context, k *admin.Client) (out []string, err error) {
	all, err := k.People(ctx, &adminv1.PeopleRequest{})
	for _, x := range all.GetWaiting() {
		out = append(out, x.Code+"\t"+x.Name+" on "+x.Channel)
	}
	return out, err
}

func approvedTools(ctx context.Context, k *admin.Client) (out []string, err error) {
	all, err := k.Approvals(ctx, &adminv1.ApprovalsRequest{})
	for _, a := range all.GetApprovals() {
		out = append(out, a.GetTool()+"\tfor "+a.GetAgent())
	}
	return out, err
}

func groupIDs(ctx context.Context, k *admin.Client) (out []string, err error) {
	all, err := k.People(ctx, &adminv1.PeopleRequest{})
	for _, g := range all.GetGroups() {
		out = append(out, g.Id+"\t"+groupName(g))
	}
	return out, err
}

func peopleOn(channel string) ids {
	return func(ctx context.Context, k *admin.Client) (out []string, err error) {
		all, err := k.People(ctx, &adminv1.PeopleRequest{})
		for _, x := range all.GetApproved() {
			if x.Channel == channel {
				out = append(out, x.UserId+"\t"+x.Name)
			}
		}
		return out, err
	}
}
