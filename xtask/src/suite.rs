//! The tiers of tests above plain `cargo test`.

use std::path::PathBuf;

use crate::project::{cargo, root, run, target};
use crate::report::{Outcome, Report};
use crate::sample::SampleError;
use crate::{Result, arrows, python, s3, sample, variants};

/// `cargo test`, then the program against other people's readers, on small models and on a real one.
pub(crate) fn test() -> Result<()> {
    let mut report = Report::default();
    tests(&mut report);
    report.end()
}

/// All that has to pass before anything lands, the quick ones first.
pub(crate) fn ci() -> Result<()> {
    let mut report = Report::default();
    report.step("rustfmt", || run(&mut cargo(&["fmt", "--all", "--check"])).into());
    report.step("arrows", || {
        let lines = arrows::check();
        lines.map(|lines| lines.iter().for_each(|line| println!("{line}"))).into()
    });
    report.step("clippy", || {
        run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])).into()
    });
    report.step("docs", || {
        run(cargo(&["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-Dwarnings")).into()
    });
    report.step("the real model, fetched", || match sample::fetch() {
        Ok(_) => Outcome::Passed,
        Err(SampleError::NotHad(why)) => Outcome::NotRun(why),
        Err(SampleError::Wrong(why)) => Outcome::Failed(why),
    });
    tests(&mut report);
    report.end()
}

fn tests(report: &mut Report) {
    // The program is built with the tests that run it: building it alone would be with other features, and all again.
    if !report.step("build", || run(&mut cargo(&["test", "--workspace", "--quiet", "--no-run"])).into()) {
        return;
    }
    report.step("cargo test", || run(&mut cargo(&["test", "--workspace", "--quiet", "--no-fail-fast"])).into());

    report.step("object stores against a real S3 API", || match s3::start() {
        Ok(server) => {
            let mut test = cargo(&["test", "--workspace", "--quiet", "--test", "buckets", "a_real_s3_api"]);
            run(test.env("GGUF2ST_TEST_S3", &server.endpoint)).into()
        }
        Err(error) => Outcome::NotRun(error.to_string()),
    });

    let program = target().join("debug").join(format!("gguf2st{}", std::env::consts::EXE_SUFFIX));
    let environment = python::environment().map_err(|error| error.to_string());
    let mut check = |name: &str, models: Result<Vec<PathBuf>>| {
        report.step(name, || match (&environment, models) {
            (Ok(interpreter), Ok(models)) => python::check(interpreter, &program, &models).into(),
            (Err(why), _) => Outcome::NotRun(why.clone()),
            (_, Err(why)) => Outcome::NotRun(why.to_string()),
        });
    };
    check("cross-checks in Python, small models", small_models());
    let real = sample::path();
    let not_here = "it is not in models/; `cargo xtask sample` fetches it";
    check("cross-checks in Python, the real model", real.clone().map(|path| vec![path]).ok_or_else(|| not_here.into()));
    report.step("every way to convert the real model", || match &real {
        Some(model) => variants::check(&program, model).into(),
        None => Outcome::NotRun(not_here.to_owned()),
    });
}

/// The models that are committed, and the golden vectors, of which the checks make containers with all types.
fn small_models() -> Result<Vec<PathBuf>> {
    let testdata = root().join("testdata");
    let mut models = vec![testdata.join("tiny-llama.gguf")];
    for entry in std::fs::read_dir(testdata.join("models"))? {
        models.push(entry?.path());
    }
    models.retain(|path| path.extension().is_some_and(|extension| extension == "gguf"));
    models.sort();
    models.push(testdata.join("golden"));
    Ok(models)
}
