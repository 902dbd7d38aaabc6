package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/sdk/admin"
)

// scheduleFlags are the flags of schedules add and edit.
type scheduleFlags struct {
	in, every   time.Duration
	at, cron    string
	until, zone string
	channel     string
	everyDays   int
}

func (f *scheduleFlags) register(c *cobra.Command) {
	c.Flags().DurationVar(&f.in, "in", 0, "once, after this time, such as 20m or 1h30m")
	c.Flags().StringVar(&f.at, "at", "", `once, at 18:30 or 2026-03-01T18:30`)
	c.Flags().DurationVar(&f.every, "every", 0, "again and again, at this interval")
	c.Flags().StringVar(&f.cron, "cron", "", `by a cron expression, such as "0 9 * * 1-5": 9:00 on weekdays`)
	c.Flags().IntVar(&f.everyDays, "every-days", 0, "with --cron: only every n-th day, such as 2 for every other day")
	c.Flags().StringVar(&f.until, "until", "", "with --every or --cron: the last day or time")
	c.Flags().StringVar(&f.zone, "timezone", "", "a time zone, such as Europe/Berlin (default: as configured)")
	c.Flags().StringVar(&f.channel, "channel", "", "the channel to remind you on")
	completeFlag(c, "channel", channelIDs)
}

// check reports a time that is too short, more than one, and none where one is needed.
func (f *scheduleFlags) check(c *cobra.Command, needed bool) error {
	for flag, d := range map[string]time.Duration{"in": f.in, "every": f.every} {
		if c.Flags().Changed(flag) && d < time.Second {
			return fmt.Errorf("--%s %s: give a second or more", flag, d)
		}
	}
	given := 0
	for _, flag := range []string{"in", "at", "every", "cron"} {
		if c.Flags().Changed(flag) {
			given++
		}
	}
	if given > 1 || needed && given == 0 {
		return errors.New("give one time: --in 20m, --at 18:30, --every 2h or --cron \"0 9 * * 1-5\"")
	}
	return nil
}

// arguments are those of the scheduler's tools.
func (f *scheduleFlags) arguments(c *cobra.Command, text string) map[string]any {
	fields := map[string]any{}
	given := func(flag, field string, value any) {
		if c.Flags().Changed(flag) {
			fields[field] = value
		}
	}
	if text != "" {
		fields["message"] = text
	}
	given("in", "delay_seconds", f.in.Seconds())
	given("at", "at", f.at)
	given("every", "every_seconds", f.every.Seconds())
	given("cron", "cron", f.cron)
	given("every-days", "every_days", f.everyDays)
	given("until", "until", f.until)
	given("timezone", "timezone", f.zone)
	given("channel", "channel_id", f.channel)
	return fields
}

func newSchedulesAdd() *cobra.Command {
	c := &cobra.Command{
		Use: "add TEXT...", Short: "Set a reminder", Args: cobra.MinimumNArgs(1),
		Long: "Sets a reminder for one time (--in, --at) or a repeating one (--every, --cron). With --task the\n" +
			"assistant does at that time what the text says, and sends you the result.",
		Example: "  switchboard schedules add --in 20m take the cake out of the oven\n" +
			"  switchboard schedules add --cron \"0 9 1 * *\" pay the rent\n" +
			"  switchboard schedules add --at 07:30 --task summarize the open items",
	}
	asJSON := jsonFlag(c)
	var f scheduleFlags
	f.register(c)
	task := c.Flags().Bool("task", false, "let the assistant do it")
	c.RunE = withKernel("set a reminder", func(c *cobra.Command, k *admin.Client, args []string) error {
		if err := f.check(c, true); err != nil {
			return err
		}
		fields := f.arguments(c, strings.Join(args, " "))
		if *task {
			fields["topic"] = "system.agent.task"
		}
		name := scheduleOnce
		if c.Flags().Changed("every") || c.Flags().Changed("cron") {
			name = scheduleRecurring
		}
		return runTool(c, k, name, fields, *asJSON)
	})
	return c
}

func newSchedulesEdit() *cobra.Command {
	c := &cobra.Command{
		Use: "edit ID [TEXT...]", Short: "Change a reminder's text or time", Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: first(scheduleIDs),
		Example: "  switchboard schedules edit r4 --at 18:00\n" +
			"  switchboard schedules edit r4 pay the rent and the garage",
	}
	asJSON := jsonFlag(c)
	var f scheduleFlags
	f.register(c)
	c.RunE = withKernel("change", byName(scheduleIDs, 1, func(c *cobra.Command, k *admin.Client, args []string) error {
		if err := f.check(c, false); err != nil {
			return err
		}
		fields := f.arguments(c, strings.Join(args[1:], " "))
		if len(fields) == 0 {
			return errors.New("give a new text, or a flag such as --at 18:00")
		}
		fields["id"], fields["action"] = args[0], "edit"
		return runTool(c, k, updateSchedule, fields, *asJSON)
	}))
	return c
}

func changeSchedule(verb, short, name, action string) *cobra.Command {
	c := &cobra.Command{Use: verb + " ID", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: first(scheduleIDs)}
	asJSON := jsonFlag(c)
	c.RunE = withKernel(action, byName(scheduleIDs, 1, func(c *cobra.Command, k *admin.Client, args []string) error {
		fields := map[string]any{"id": args[0]}
		if name == updateSchedule {
			fields["action"] = verb
		}
		return runTool(c, k, name, fields, *asJSON)
	}))
	return c
}
