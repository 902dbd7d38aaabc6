package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

func newModelsCommand() *cobra.Command {
	return group("models", "Language models and their providers", newModelsList(), newModelsTest())
}

// modelRow is one row of `models list`.
type modelRow struct {
	Model   string `json:"model"`
	State   string `json:"state"`
	Default bool   `json:"default"`
	Context int64  `json:"context,omitempty"`
	Price   string `json:"price,omitempty"` // input, cached input, output
	Detail  string `json:"detail,omitempty"`
}

func newModelsList() *cobra.Command {
	c := &cobra.Command{
		Use: "list [provider...]", Short: "List the models",
		Long: "Lists the configured models of each provider, and marks the one that is tried first. The servers are\n" +
			"asked for the models that they have. Of a long list only the configured models are shown, unless you name\n" +
			"the provider.\n\n" +
			"CONTEXT is the context window in tokens: the configured one, or what the server tells. Ollama and LM Studio\n" +
			"tell it of models that are loaded, most services of none.\n\n" +
			"PRICE is of a million tokens of input, cached input and output: configured, or the list price as of\n" +
			config.PricesDate + ", or what the server lists now, as OpenRouter does.",
	}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		_, seen, err := inspectHere()
		if err != nil {
			return err
		}
		first := ""
		if order := modelsOf(seen); len(order) > 0 {
			first = order[0]
		}
		all, err := chosen(providersOf(seen), args)
		if err != nil {
			return err
		}
		var rows []modelRow
		for _, p := range all {
			rows = append(rows, p.rows(c.Context(), first, len(args) > 0)...)
		}
		for i := range rows {
			rows[i].Price = cmp.Or(priceOf(seen, rows[i].Model), rows[i].Price)
		}
		return list(c, *asJSON, rows, "MODEL CONTEXT PRICE STATE DETAIL | CONTEXT PRICE",
			"There are no models: all their providers are disabled in config.yaml.",
			func(_ *printer, r modelRow) []cell {
				name, size := r.Model, "-"
				if r.Default {
					name += " (default)"
				}
				if r.Context > 0 {
					size = humanize.Comma(r.Context)
				}
				return []cell{text(name), text(size), text(dash(r.Price)), state(r.State), text(r.Detail)}
			})
	}
	return c
}

// priceOf shows the price of a model; empty: it is not known.
func priceOf(seen *home.Inspection, model string) string {
	p, known := seen.Price(model)
	switch {
	case !known:
		return ""
	case p.Input == 0 && p.Output == 0:
		return "free"
	}
	return fmt.Sprintf("%g/%g/%g %s", p.Input, p.CachedInput(), p.Output, p.Currency)
}

// inspectHere reads the files of the home that the environment names.
func inspectHere() (*config.Home, *home.Inspection, error) {
	h, err := findHome()
	if err != nil {
		return nil, nil, err
	}
	seen, err := inspect(h)
	if err == nil && seen.ConfigErr != nil {
		err = fmt.Errorf("the configuration has errors; fix them first:\n%w", seen.ConfigErr)
	}
	if err == nil && seen.SecretsErr != nil {
		err = fmt.Errorf("the secrets have errors; fix them first:\n%w", seen.SecretsErr)
	}
	return h, seen, err
}

// chosen returns the providers with these ids; none: all.
func chosen(all []provider, ids []string) ([]provider, error) {
	if len(ids) == 0 {
		return all, nil
	}
	var known []string
	for _, p := range all {
		known = append(known, p.id)
	}
	var out []provider
	for _, id := range ids {
		i := slices.Index(known, id)
		if i < 0 {
			return nil, fmt.Errorf("there is no model provider %q: there are %s", id, strings.Join(known, ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// fewModels is the longest list of a server that is shown without being asked for.
const fewModels = 20

// rows returns the rows of a provider: its configured models, and with all, or where they
// are few, those that the server lists.
func (p *provider) rows(ctx context.Context, first string, all bool) (rows []modelRow) {
	add := func(m modelapi.Model, state, detail string) {
		full := p.id + "/" + m.ID
		if !slices.ContainsFunc(rows, func(r modelRow) bool { return r.Model == full }) {
			rows = append(rows, modelRow{
				Model: full, State: state, Default: full == first, Context: m.Context, Detail: detail,
			})
			if p := m.Price; p != nil {
				rows[len(rows)-1].Price = fmt.Sprintf("%g/%g/%g USD", p.Input, p.Cached, p.Output)
			}
		}
	}
	configured := p.models
	if len(configured) == 0 {
		configured = []string{cmp.Or(p.standard(), "*")}
	}
	state, detail := "ready", ""
	var listed []modelapi.Model
	if len(p.missing) > 0 {
		state, detail = "unconfigured", strings.Join(p.missing, " and ")+" is not set"
	} else if found, err := p.list(ctx, configured); err != nil {
		state, detail = "offline", message(err)
	} else {
		listed = found
	}
	lists := len(listed) > 0
	for _, name := range configured {
		m := modelapi.Model{ID: name, Context: p.config.Window(name)}
		i := slices.IndexFunc(listed, func(x modelapi.Model) bool { return sameOfServer(x.ID, name) })
		if i >= 0 {
			m.Context, m.Price = cmp.Or(m.Context, listed[i].Context), listed[i].Price
			listed = slices.Delete(listed, i, i+1)
		}
		switch {
		case name == "*" && detail == "":
			add(m, state, "the default: one that the server lists")
		case lists && i < 0:
			add(m, state, "the server doesn't list it")
		default:
			add(m, state, detail)
		}
	}
	if all || len(listed) <= fewModels {
		for _, m := range listed {
			add(m, state, "")
		}
	}
	return rows
}

// sameOfServer reports whether a server lists a model under this name. Ollama adds the tag
// latest to a name without one.
func sameOfServer(listed, name string) bool { return listed == name || listed == name+":latest" }

func newModelsTest() *cobra.Command {
	c := &cobra.Command{
		Use: "test [provider/model...]", Short: "Ask each model for a tiny completion",
		Long: "Asks each configured model, or the named ones, for a few tokens, and says what to change if that fails.\n" +
			"The requests go from here to the servers, past the kernel: its limits don't count them. The exit status is 1\n" +
			"if a model doesn't answer.",
	}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		h, seen, err := inspectHere()
		if err != nil {
			return err
		}
		all, err := targets(providersOf(seen), args)
		if err != nil {
			return err
		}
		results := checkAll(c.Context(), h, all)
		failed := slices.ContainsFunc(results, func(r checked) bool { return !r.OK })
		if *asJSON {
			err = printJSON(c, asJSONList(results))
		} else {
			printerOf(c).checks(results)
		}
		if err == nil && failed {
			err = errReported
		}
		return err
	}
	return c
}

func (p *printer) checks(all []checked) {
	if len(all) == 0 {
		p.line("No language model is set up. docs/models.md has recipes; the first is: set OPENAI_API_KEY.")
	}
	for _, r := range all {
		if r.OK {
			window := ""
			if r.Context > 0 {
				window = ", a context of " + humanize.Comma(r.Context)
			}
			p.line("%s %s answers: %s, %s in, %d out%s", p.paint(green, "✓"), r.Model, r.seconds(),
				count(int(r.Input), "token"), r.Output, window)
			if hint := r.tightHint(); hint != "" {
				p.faint("    " + hint)
			}
			continue
		}
		p.line("%s %s: %s", p.paint(red, "✗"), r.Model, r.Error)
		if r.Fix != "" {
			p.faint("    " + r.Fix)
		}
	}
}

func (r checked) seconds() string { return fmt.Sprintf("%.1f s", r.Took) }

// targets returns the models to check: the named ones, or the configured ones of each
// provider, or its default. Without a name, providers that are not set up are left out.
func targets(all []provider, names []string) (out []target, err error) {
	if len(names) == 0 {
		for _, p := range all {
			if p.kind == nil || len(p.missing) > 0 && !p.named {
				continue
			}
			for _, m := range p.models {
				out = append(out, target{p, m})
			}
			if len(p.models) == 0 {
				out = append(out, target{p, ""})
			}
		}
		return out, nil
	}
	for _, name := range names {
		id, model, _ := strings.Cut(name, "/")
		p, err := chosen(all, []string{id})
		switch {
		case err != nil:
			return nil, err
		case p[0].kind == nil:
			return nil, fmt.Errorf("%s: %w", id, errNotAsked)
		}
		out = append(out, target{p[0], model})
	}
	return out, nil
}
