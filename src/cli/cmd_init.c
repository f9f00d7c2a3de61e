/* SPDX-License-Identifier: MIT
 * cmd_init.c - `tare init ci`: writes the workflow that compares each change with the branch it goes to. The shell in
 * it is the same for all services; what differs is the frame around it. Never overwrites a file. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "core/file.h"
#include "core/str.h"

static const char install[] =
    "SUDO=$(command -v sudo || true)\n"
    "$SUDO apt-get update -qq\n"
    "$SUDO apt-get install -y -qq --no-install-recommends ca-certificates git gcc make binutils pkg-config \\\n"
    "    libc6-dev libjansson-dev libyaml-dev libzstd-dev zlib1g-dev libssl-dev libsqlite3-dev \\\n"
    "    libcurl4-openssl-dev\n"
    "git clone --depth 1 \"${TARE_GIT:?set it to the address of tare's repository}\" /tmp/tare\n"
    "make -C /tmp/tare\n"
    "$SUDO make -C /tmp/tare install\n";
static const char install_onnxruntime[] =
    "$SUDO apt-get install -y -qq --no-install-recommends python3-venv\n"
    "python3 -m venv /tmp/ort && /tmp/ort/bin/pip install --quiet onnxruntime\n";
static const char show[] = "tare compare speed/comparison.json || true\n"
                           "tare compare speed/comparison.json --format md -o speed/comment.md || true\n"
                           "tare compare speed/comparison.json --format junit -o speed/junit.xml || true\n";

/* A service: its file, the frame with @install and @compare, which are indented as they stand there. */
struct service {
    const char *name, *path, *base, *more, *frame, *note;
    bool groovy; /* the shell stands in a string of Groovy */
};

static const struct service services[] = {
    {.name = "github",
     .path = ".github/workflows/speed.yml",
     .base = "origin/${GITHUB_BASE_REF:-main}",
     .more = "cat speed/comment.md >>\"$GITHUB_STEP_SUMMARY\"\n"
             "tare compare speed/comparison.json --format github || true\n",
     .frame = "name: speed\n"
              "on: pull_request\n"
              "jobs:\n"
              "  compare:\n"
              "    runs-on: ubuntu-latest\n"
              "    permissions: {contents: read}\n"
              "    env: {TARE_GIT: \"${{ vars.TARE_GIT }}\"}\n"
              "    steps:\n"
              "      - uses: actions/checkout@v4\n"
              "        with: {fetch-depth: 0}\n"
              "      - name: install tare\n"
              "        run: |\n"
              "          @install\n"
              "      - name: compare, in turn\n"
              "        run: |\n"
              "          @compare\n"
              "      - name: keep\n"
              "        if: always()\n"
              "        uses: actions/upload-artifact@v4\n"
              "        with: {name: speed, path: speed}\n",
     .note = "a variable TARE_GIT of the repository (Settings, Variables) must hold the address of tare's repository"},
    {.name = "gitlab",
     .path = ".gitlab-ci.yml",
     .base = "origin/${CI_MERGE_REQUEST_TARGET_BRANCH_NAME:-main}",
     .more = "",
     .frame = "speed:\n"
              "  image: debian:12\n"
              "  rules: [{if: $CI_PIPELINE_SOURCE == \"merge_request_event\"}]\n"
              "  variables: {GIT_DEPTH: 0}\n"
              "  script:\n"
              "    - |\n"
              "      @install\n"
              "    - |\n"
              "      git fetch -q origin\n"
              "      @compare\n"
              "  artifacts:\n"
              "    when: always\n"
              "    paths: [speed]\n"
              "    reports: {junit: speed/junit.xml}\n",
     .note = "a CI/CD variable TARE_GIT must hold the address of tare's repository"},
    {.name = "jenkins",
     .path = "Jenkinsfile",
     .base = "origin/${CHANGE_TARGET:-main}",
     .more = "",
     .groovy = true,
     .frame = "pipeline {\n"
              "    agent any\n"
              "    stages {\n"
              "        stage('install tare') {\n"
              "            steps {\n"
              "                sh '''\n"
              "                @install\n"
              "                '''\n"
              "            }\n"
              "        }\n"
              "        stage('compare, in turn') {\n"
              "            steps {\n"
              "                sh '''\n"
              "                @compare\n"
              "                '''\n"
              "            }\n"
              "        }\n"
              "    }\n"
              "    post {\n"
              "        always {\n"
              "            archiveArtifacts artifacts: 'speed/**', allowEmptyArchive: true\n"
              "            junit testResults: 'speed/junit.xml', allowEmptyResults: true\n"
              "        }\n"
              "    }\n"
              "}\n",
     .note = "a global variable TARE_GIT (Manage Jenkins, System) must hold the address of tare's repository"},
};

struct init_args {
    int service;
    const char *build, *output, *budget;
    const char *model; /* or: */
    char **command;
};

/* ---- the shell ---- */

static void add_word(struct buf *b, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+";
    if (*word && word[strspn(word, plain)] == 0) {
        buf_add_str(b, word);
        return;
    }
    buf_add_char(b, '\'');
    for (const char *c = word; *c; c++) {
        if (*c == '\'')
            buf_add_str(b, "'\\''");
        else
            buf_add_char(b, *c);
    }
    buf_add_char(b, '\'');
}

static void compare_script(struct buf *b, const struct init_args *a, const struct service *to)
{
    buf_add_str(b, "mkdir -p speed\nrc=0\n");
    if (a->model) {
        buf_printf(b, "export VIRTUAL_ENV=/tmp/ort\ngit worktree add /tmp/base \"%s\"\n", to->base);
        buf_add_str(b, "tare compare --ab /tmp/base/");
        add_word(b, a->model);
        buf_add_char(b, ' ');
        add_word(b, a->model);
    } else {
        buf_printf(b, "tare compare --ab-rev \"%s..HEAD\"", to->base);
    }
    if (a->build) buf_add_str(b, " --build ");
    if (a->build) add_word(b, a->build);
    buf_printf(b, " --budget %s --json", a->budget);
    for (char **w = a->command; w && *w; w++) {
        buf_add_str(b, w == a->command ? " -- " : " ");
        add_word(b, *w);
    }
    buf_printf(b, " >speed/comparison.json || rc=$?\n%s%sexit \"$rc\"\n", show, to->more);
}

/* ---- the file ---- */

/* Each line of the script as far in as the place in the frame is. */
static void add_script(struct buf *out, const char *script, size_t indent, bool groovy)
{
    for (const char *s = script; *s;) {
        size_t n = strcspn(s, "\n");
        if (s != script) buf_printf(out, "%*s", (int)indent, "");
        for (size_t i = 0; i < n; i++) {
            if (groovy && (s[i] == '\\' || s[i] == '\'')) buf_add_char(out, '\\');
            buf_add_char(out, s[i]);
        }
        s += n + (s[n] == '\n');
        if (*s) buf_add_char(out, '\n');
    }
}

static void fill_frame(struct buf *out, const struct service *to, const struct init_args *a)
{
    struct buf script = BUF_INIT;
    for (const char *s = to->frame; *s;) {
        size_t indent = strspn(s, " "), n = strcspn(s, "\n");
        bool installs = strncmp(s + indent, "@install", 8) == 0,
             compares = strncmp(s + indent, "@compare", 8) == 0;
        buf_clear(&script);
        if (installs) buf_add_str(&script, install);
        if (installs && a->model) buf_add_str(&script, install_onnxruntime);
        if (compares) compare_script(&script, a, to);
        buf_add(out, s, installs || compares ? indent : n);
        if (script.len) add_script(out, script.data, indent, to->groovy);
        buf_add_char(out, '\n');
        s += n + (s[n] == '\n');
    }
    if (script.failed) out->failed = 1;
    buf_release(&script);
}

static int write_workflow(struct cli *cli, const struct init_args *a)
{
    const struct service *to = &services[a->service];
    const char *path = a->output ? a->output : to->path, *slash = strrchr(path, '/');
    struct buf text = BUF_INIT;
    char folder[1024];
    fill_frame(&text, to, a);
    tare_status s = buf_status(&text, &cli->error);
    if (s == TARE_OK && strcmp(path, "-") == 0) {
        cli_write_exact(cli, text.data, text.len);
        buf_release(&text);
        return CLI_GOOD;
    }
    snprintf(folder, sizeof folder, "%.*s", slash && slash > path ? (int)(slash - path) : 1,
             slash ? path : ".");
    if (s == TARE_OK && !a->output) s = file_make_folders(folder, &cli->error);
    if (s == TARE_OK) s = file_write_atomic(path, text.data, text.len, FILE_SHARED, &cli->error);
    buf_release(&text);
    if (s != TARE_OK) return cli_fail(cli);
    cli_note(cli, "wrote %s; %s", path, to->note);
    return CLI_GOOD;
}

/* ---- what was asked for ---- */

/* What would leave the string that it stands in, or the line. */
static int check_word(struct cli *cli, const char *word)
{
    for (const char *c = word; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return cli_usage_error(cli, "a word holds a control character");
    if (strstr(word, "${{")) return cli_usage_error(cli, "'%.40s': ${{ is an expression of GitHub", word);
    return 0;
}

static int check_subject(struct cli *cli, struct init_args *a, bool dashes, int n, char **args)
{
    int rc = a->build ? check_word(cli, a->build) : 0;
    if (n == 0)
        return cli_usage_error(cli,
                               "set up what? tare init ci model.onnx, or tare init ci --build make -- ./app");
    if (strcmp(args[0], "ci") != 0)
        return cli_usage_error(cli, "'%s' cannot be set up; as in: tare init ci --build make -- ./app",
                               args[0]);
    for (int i = 1; i < n && !rc; i++) rc = check_word(cli, args[i]);
    if (rc) return rc;
    if (n < 2)
        return cli_usage_error(
            cli, "measure what? tare init ci model.onnx, or tare init ci --build make -- ./app");
    if (dashes) {
        a->command = args + 1;
    } else {
        a->model = args[1];
        if (n > 2 || !str_ends_with(a->model, ".onnx"))
            return cli_usage_error(cli, "'%s': one model.onnx, or a command after --: tare init ci -- %s",
                                   args[n - 1], args[1]);
        if (*a->model == '/')
            return cli_usage_error(cli, "%s: name the model as seen from the repository", a->model);
        if (a->build) return cli_usage_error(cli, "--build is for commands: a model is in the repository");
    }
    return 0;
}

static int check_file(struct cli *cli, const struct init_args *a)
{
    const char *path = a->output ? a->output : services[a->service].path;
    if (strcmp(path, "-") == 0 || (access(path, F_OK) != 0 && errno == ENOENT)) return 0;
    return cli_usage_error(
        cli, "%s is there already and stays as it is; -o FILE writes another, -o - shows it", path);
}

int cmd_init(struct cli *cli, int argc, char **argv)
{
    static const struct opt_choice names[] = {
        {"github", 0, NULL}, {"gitlab", 1, NULL}, {"jenkins", 2, NULL}, {NULL, 0, NULL}};
    static const struct opt_usage usage = {
        .synopsis = "tare init [options] ci <model.onnx>\n"
                    "tare init [options] ci -- <command> [args]",
        .about = "Write the workflow of a CI service that compares each change with the branch it goes to, both "
                 "measured in turn on one machine, and fails on a regression. No file is overwritten.",
        .tail = "tare init ci --build make -- ./app\n"
                "tare init ci models/minilm.onnx --for gitlab",
        .max_args = UINT32_MAX,
    };
    struct init_args a = {.budget = "60s"};
    const struct opt rows[] = {
        OPT_ENUM(0, "for", &a.service, names, "which service"),
        OPT_STRING(0, "build", &a.build, "<command>", "how a revision is built, before its command runs"),
        OPT_STRING(0, "budget", &a.budget, "<time>", "how long to measure"),
        OPT_OUT('o', "output", &a.output, "<file>", "where to (default: where the service looks); - is stdout"),
        OPT_END,
    };
    bool dashes = false;
    for (int i = 1; i < argc; i++) dashes = dashes || strcmp(argv[i], "--") == 0;
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (!rc) rc = check_subject(cli, &a, dashes, argc, argv);
    if (!rc) rc = check_file(cli, &a);
    return rc ? rc : write_workflow(cli, &a);
}
